// SPDX-License-Identifier: BSD-3-Clause
//! An echo of messages, then of a stream. The client compares what returns with what it sent.
//!
//!     echo server SPEC
//!     echo client SPEC PEER

#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod rtsan;

use rtsan::{Context, QueuePair, Stream};
use std::io::{Error, ErrorKind, Read, Result, Write};

const MESSAGES: u64 = 7472;
const BYTES: u64 = 7473;
const TIMEOUT_MS: i32 = 30_000; // without an event or completion
const NB_MESSAGES: usize = 1000;
const NB_BUFFERS: usize = 2; // of the server: one is received while the other returns
const SIZE: usize = 4096;
const CHUNK: usize = 64 * 1024;
const NB_CHUNKS: usize = 16;

fn fail<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::Other, what.into()))
}

/// The bytes of a message or a part of a stream: others for each *number*.
fn pattern(number: usize, bytes: &mut [u8]) {
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = (at * 31 + (at >> 12) + number) as u8;
    }
}

fn serve(spec: &str) -> Result<()> {
    let ctx = Context::open(spec)?;
    let _messages = ctx.listen(MESSAGES)?;
    let streams = ctx.listen(BYTES)?;
    println!("echo: listening");

    let mut qp = QueuePair::new(&ctx, NB_BUFFERS as u32)?;
    for _ in 0..NB_BUFFERS {
        qp.post_recv(ctx.buffer(SIZE)?)?;
    }
    qp.accept(TIMEOUT_MS)?;
    let mut sent = 0;
    while sent < NB_MESSAGES {
        let done = qp.wait(TIMEOUT_MS)?;
        let len = done.bytes?;
        if done.is_recv {
            qp.post_send(done.buffer, len)?;
        } else {
            qp.post_recv(done.buffer)?;
            sent += 1;
        }
    }
    qp.wait_end(TIMEOUT_MS)?;

    let mut stream = streams.accept_stream(TIMEOUT_MS)?;
    let mut chunk = vec![0; CHUNK];
    let mut sum = 0;
    loop {
        let len = stream.read(&mut chunk)?;
        if len == 0 {
            break;
        }
        stream.write_all(&chunk[..len])?;
        sum += len;
    }
    stream.close(TIMEOUT_MS)?;
    println!("echo: {sent} messages and {sum} bytes of a stream returned");
    Ok(())
}

fn ask(spec: &str, peer: &str) -> Result<()> {
    let ctx = Context::open(spec)?;
    let mut qp = QueuePair::new(&ctx, 2)?;
    let (mut from, mut to) = (ctx.buffer(SIZE)?, ctx.buffer(SIZE)?);
    let mut expected = vec![0; SIZE];

    qp.connect(peer, MESSAGES, TIMEOUT_MS)?;
    for number in 0..NB_MESSAGES {
        let len = 1 + number * 7 % SIZE;
        pattern(number, &mut expected);
        to[..len].copy_from_slice(&expected[..len]);
        qp.post_recv(from)?;
        qp.post_send(to, len)?;
        let (one, other) = (qp.wait(TIMEOUT_MS)?, qp.wait(TIMEOUT_MS)?);
        let (recv, send) = if one.is_recv { (one, other) } else { (other, one) };
        if send.bytes? != len || recv.bytes? != len || recv.buffer[..len] != expected[..len] {
            return fail(format!("message {number} is not the same"));
        }
        (from, to) = (recv.buffer, send.buffer);
    }
    qp.disconnect(TIMEOUT_MS)?;

    let mut stream = Stream::connect(&ctx, peer, BYTES, TIMEOUT_MS)?;
    let (mut chunk, mut expected) = (vec![0; CHUNK], vec![0; CHUNK]);
    for number in 0..NB_CHUNKS {
        pattern(number, &mut expected);
        stream.write_all(&expected)?;
        stream.read_exact(&mut chunk)?;
        if chunk != expected {
            return fail(format!("part {number} of the stream is not the same"));
        }
    }
    stream.shutdown_write()?;
    if stream.read(&mut chunk)? != 0 {
        return fail("the stream does not end");
    }
    stream.close(TIMEOUT_MS)?;
    println!(
        "echo: {NB_MESSAGES} messages and {} bytes came back, by {}",
        NB_CHUNKS * CHUNK,
        ctx.provider()
    );
    Ok(())
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[1..] {
        ["server", spec] => serve(spec),
        ["client", spec, peer] => ask(spec, peer),
        _ => fail("usage: echo server SPEC | client SPEC PEER"),
    };
    if let Err(e) = done {
        eprintln!("echo: {e}");
        std::process::exit(1);
    }
}
