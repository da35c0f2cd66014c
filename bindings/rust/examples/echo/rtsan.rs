// SPDX-License-Identifier: BSD-3-Clause
//! A safe layer over what the example needs of librtsan. It is sound because of these rules:
//!
//! - What is made from a context borrows it, so the context is closed last.
//! - A queue pair owns a posted buffer until its completion returns it. A borrow would not do: a
//!   guard that is forgotten ends the borrow, and the engine still writes.
//! - A queue pair is destroyed before its buffers and its completion queue.
//! - Peers have no rights in a region, so nothing but posted work changes it.
//! - Nothing is Send or Sync, by its pointers: by default the caller polls the engine, and then a
//!   context and all that is made from it belong to one thread (rtsan.h).

use rtsan_sys as sys;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::marker::PhantomData;
use std::mem::size_of;
use std::ops::{Deref, DerefMut};
use std::os::raw::{c_char, c_int};
use std::ptr::{null, null_mut, NonNull};
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Copy a text of the library: never NULL, and valid until this thread's next call.
unsafe fn text(raw: *const c_char) -> String {
    CStr::from_ptr(raw).to_string_lossy().into_owned()
}

/// A result of the library: a count, or -errno and a text of this thread.
fn check(rc: impl Into<i64>) -> Result<usize> {
    let rc = rc.into();
    usize::try_from(rc).map_err(|_| {
        let kind = Error::from_raw_os_error(-rc as i32).kind();
        // SAFETY: always allowed.
        Error::new(kind, unsafe { text(sys::rtsan_error()) })
    })
}

/// The same of functions that return an object in their last argument.
fn create<T>(call: impl FnOnce(*mut *mut T) -> c_int) -> Result<NonNull<T>> {
    let mut out = null_mut();
    check(call(&mut out))?;
    Ok(NonNull::new(out).expect("success without a result"))
}

/// The result of a wait. A signal ends it early, like an arrival: the caller polls again.
fn waited(rc: c_int) -> Result<()> {
    match check(rc) {
        Ok(0) => Err(Error::new(ErrorKind::TimedOut, "nothing arrives in time")),
        Err(e) if e.kind() != ErrorKind::Interrupted => Err(e),
        _ => Ok(()),
    }
}

// ---- contexts ----

pub struct Context {
    raw: NonNull<sys::rtsan_ctx>,
    caps: sys::rtsan_caps,
}

impl Context {
    pub fn open(spec: &str) -> Result<Self> {
        let spec = CString::new(spec)?;
        // SAFETY: for all calls here: the pointers are valid during the call.
        let raw = create(|out| unsafe { sys::rtsan_open(spec.as_ptr(), out) })?;
        let mut caps = sys::rtsan_caps::default();
        // It writes at most this size: a library that is older leaves zeros.
        unsafe { sys::rtsan_query(raw.as_ptr(), &mut caps, size_of::<sys::rtsan_caps>()) };
        Ok(Self { raw, caps })
    }

    pub fn provider(&self) -> String {
        // SAFETY: the library has ended it with NUL.
        unsafe { text(self.caps.provider.as_ptr()) }
    }

    pub fn buffer(&self, len: usize) -> Result<Buffer<'_>> {
        let raw = create(|out| unsafe { sys::rtsan_mr_alloc(self.raw.as_ptr(), len, 0, out) })?;
        let ctx = PhantomData;
        Ok(Buffer { raw, ctx })
    }

    pub fn listen(&self, service: u64) -> Result<Listener<'_>> {
        let raw =
            create(|out| unsafe { sys::rtsan_listen(self.raw.as_ptr(), service, 0, 1, out) })?;
        let ctx = PhantomData;
        Ok(Listener { raw, ctx })
    }

    /// Wait for an event, which must be of this type. Those of streams do not come here.
    fn expect(&self, type_: sys::rtsan_event_type, timeout_ms: c_int) -> Result<sys::rtsan_event> {
        let mut ev = sys::rtsan_event::default();
        while check(unsafe { sys::rtsan_event_poll(self.raw.as_ptr(), &mut ev) })? == 0 {
            waited(unsafe { sys::rtsan_event_wait(self.raw.as_ptr(), timeout_ms) })?;
        }
        if u32::from(ev.type_) == type_ {
            return Ok(ev);
        }
        let why = unsafe { text(sys::rtsan_reason_text(ev.reason)) };
        Err(Error::new(ErrorKind::Other, format!("event {}, not {type_}: {why}", ev.type_)))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: what was made from it is gone, or was forgotten and cannot be used.
        unsafe { sys::rtsan_close(self.raw.as_ptr()) };
    }
}

pub struct Listener<'c> {
    raw: NonNull<sys::rtsan_listener>,
    ctx: PhantomData<&'c Context>,
}

impl<'c> Listener<'c> {
    pub fn accept_stream(&self, timeout_ms: c_int) -> Result<Stream<'c>> {
        // SAFETY: as in Context; the attributes may be NULL.
        let raw = create(|out| unsafe {
            sys::rtsan_stream_accept(self.raw.as_ptr(), null(), timeout_ms, out)
        })?;
        Ok(Stream::new(raw, timeout_ms))
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        // SAFETY: it is not used any more.
        unsafe { sys::rtsan_listener_destroy(self.raw.as_ptr()) };
    }
}

// ---- messages ----

/// Registered memory.
pub struct Buffer<'c> {
    raw: NonNull<sys::rtsan_mr>,
    ctx: PhantomData<&'c Context>,
}

impl Buffer<'_> {
    fn parts(&self) -> (*mut u8, usize) {
        let raw = self.raw.as_ptr();
        // SAFETY: the region exists.
        unsafe { (sys::rtsan_mr_addr(raw).cast(), sys::rtsan_mr_length(raw)) }
    }

    fn sge(&self, len: usize) -> sys::rtsan_sge {
        let (addr, all) = self.parts();
        assert!(len <= all);
        let length = len.try_into().unwrap_or(u32::MAX); // which the library refuses
                                                         // SAFETY: the region exists.
        let lkey = unsafe { sys::rtsan_mr_lkey(self.raw.as_ptr()) };
        sys::rtsan_sge { addr: addr.cast(), length, lkey }
    }
}

// SAFETY of both: these bytes exist as long as the region, and nothing else changes them: while
// they are posted, their queue pair owns the buffer.
impl Deref for Buffer<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let (at, len) = self.parts();
        unsafe { from_raw_parts(at, len) }
    }
}

impl DerefMut for Buffer<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        let (at, len) = self.parts();
        unsafe { from_raw_parts_mut(at, len) }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: it is not used any more. If posted work names it, it stays.
        unsafe { sys::rtsan_mr_dereg(self.raw.as_ptr()) };
    }
}

pub struct Completion<'c> {
    pub buffer: Buffer<'c>,
    pub is_recv: bool,
    /// Bytes moved, or why not.
    pub bytes: Result<usize>,
}

struct Cq(NonNull<sys::rtsan_cq>);

impl Drop for Cq {
    fn drop(&mut self) {
        // SAFETY: its queue pair is destroyed.
        unsafe { sys::rtsan_cq_destroy(self.0.as_ptr()) };
    }
}

/// A queue pair with a completion queue of its own. The events of its context must be its own, too:
/// one queue pair at a time, beside streams.
pub struct QueuePair<'c> {
    raw: NonNull<sys::rtsan_qp>,
    cq: Cq,
    ctx: &'c Context,
    posted: HashMap<u64, Buffer<'c>>,
    next_id: u64,
}

impl<'c> QueuePair<'c> {
    pub fn new(ctx: &'c Context, depth: u32) -> Result<Self> {
        // SAFETY: for all calls here: the objects exist, and the rest is copied during the call.
        let cq = Cq(create(|out| unsafe {
            sys::rtsan_cq_create(ctx.raw.as_ptr(), depth.saturating_mul(2), out)
        })?);
        let attr = sys::rtsan_qp_attr {
            send_cq: cq.0.as_ptr(),
            recv_cq: cq.0.as_ptr(),
            sq_depth: depth,
            rq_depth: depth,
            ..Default::default()
        };
        let raw = create(|out| unsafe { sys::rtsan_qp_create(ctx.raw.as_ptr(), &attr, out) })?;
        Ok(Self { raw, cq, ctx, posted: HashMap::new(), next_id: 0 })
    }

    pub fn connect(&mut self, peer: &str, service: u64, timeout_ms: c_int) -> Result<()> {
        let (raw, peer) = (self.raw.as_ptr(), CString::new(peer)?);
        check(unsafe { sys::rtsan_connect(raw, peer.as_ptr(), service, null()) })?;
        self.ctx.expect(sys::RTSAN_EV_ESTABLISHED, timeout_ms).map(drop)
    }

    /// Accept the next request.
    pub fn accept(&mut self, timeout_ms: c_int) -> Result<()> {
        let ev = self.ctx.expect(sys::RTSAN_EV_CONNECT_REQUEST, timeout_ms)?;
        let (raw, ctx) = (self.raw.as_ptr(), self.ctx.raw.as_ptr());
        check(unsafe { sys::rtsan_accept(ctx, ev.request, raw, null()) })?;
        self.ctx.expect(sys::RTSAN_EV_ESTABLISHED, timeout_ms).map(drop)
    }

    pub fn disconnect(&mut self, timeout_ms: c_int) -> Result<()> {
        check(unsafe { sys::rtsan_disconnect(self.raw.as_ptr()) })?;
        self.wait_end(timeout_ms)
    }

    /// Wait until the peer disconnects.
    pub fn wait_end(&mut self, timeout_ms: c_int) -> Result<()> {
        self.ctx.expect(sys::RTSAN_EV_DISCONNECTED, timeout_ms).map(drop)
    }

    /// The library has refused the work if this is an error, or not 1: then the buffer is dropped.
    fn posted(&mut self, posted: c_int, buffer: Buffer<'c>) -> Result<()> {
        if check(posted)? == 0 {
            return Err(Error::new(ErrorKind::WouldBlock, "the queue is full"));
        }
        self.posted.insert(self.next_id, buffer);
        self.next_id += 1;
        Ok(())
    }

    /// Post a receive of a message that is at most as long as the buffer.
    pub fn post_recv(&mut self, buffer: Buffer<'c>) -> Result<()> {
        let sge = buffer.sge(buffer.len());
        let wr = sys::rtsan_recv_wr { wr_id: self.next_id, sge: &sge, nb_sge: 1, flags: 0 };
        self.posted(unsafe { sys::rtsan_post_recv(self.raw.as_ptr(), &wr, 1) }, buffer)
    }

    /// Post a send of the first *len* bytes, which must exist.
    pub fn post_send(&mut self, buffer: Buffer<'c>, len: usize) -> Result<()> {
        let sge = buffer.sge(len);
        let wr = sys::rtsan_send_wr {
            wr_id: self.next_id,
            opcode: sys::RTSAN_WR_SEND as u8,
            flags: sys::RTSAN_WR_SIGNALED as u8, // each buffer comes back
            sge: &sge,
            nb_sge: 1,
            ..Default::default()
        };
        self.posted(unsafe { sys::rtsan_post_send(self.raw.as_ptr(), &wr, 1) }, buffer)
    }

    pub fn wait(&mut self, timeout_ms: c_int) -> Result<Completion<'c>> {
        let mut wc = sys::rtsan_wc::default();
        while unsafe { sys::rtsan_cq_poll(self.cq.0.as_ptr(), &mut wc, 1) } == 0 {
            waited(unsafe { sys::rtsan_cq_wait(self.cq.0.as_ptr(), timeout_ms) })?;
        }
        let why = || unsafe { text(sys::rtsan_status_text(wc.status)) };
        let bytes = match wc.status.into() {
            sys::RTSAN_WC_SUCCESS => Ok(wc.byte_len as usize),
            _ => Err(Error::new(ErrorKind::Other, why())),
        };
        Ok(Completion {
            buffer: self.posted.remove(&wc.wr_id).expect("it was posted"),
            is_recv: wc.opcode as u32 == sys::RTSAN_WC_RECV,
            bytes,
        })
    }
}

impl Drop for QueuePair<'_> {
    fn drop(&mut self) {
        // SAFETY: it is not used any more; buffers and completion queue are dropped after this.
        unsafe { sys::rtsan_qp_destroy(self.raw.as_ptr()) };
    }
}

// ---- streams ----

pub struct Stream<'c> {
    /// None: closed.
    raw: Option<NonNull<sys::rtsan_stream>>,
    ctx: PhantomData<&'c Context>,
}

impl<'c> Stream<'c> {
    fn new(raw: NonNull<sys::rtsan_stream>, timeout_ms: c_int) -> Self {
        // SAFETY: for all calls here: the stream is open, and buffers are valid during the call.
        unsafe { sys::rtsan_stream_set_timeout(raw.as_ptr(), timeout_ms) };
        let ctx = PhantomData;
        Self { raw: Some(raw), ctx }
    }

    pub fn connect(ctx: &'c Context, peer: &str, service: u64, timeout_ms: c_int) -> Result<Self> {
        let (peer, ctx) = (CString::new(peer)?, ctx.raw.as_ptr());
        let raw = create(|out| unsafe {
            sys::rtsan_stream_connect(ctx, peer.as_ptr(), service, null(), timeout_ms, out)
        })?;
        Ok(Self::new(raw, timeout_ms))
    }

    fn raw(&self) -> Result<*mut sys::rtsan_stream> {
        let closed = || Error::new(ErrorKind::NotConnected, "the stream is closed");
        Ok(self.raw.ok_or_else(closed)?.as_ptr())
    }

    /// The result of a call on a buffer. After an error other than a timeout the engine might still
    /// use the buffer, unless the stream is closed.
    fn moved(&mut self, rc: i64) -> Result<usize> {
        let moved = check(rc);
        if matches!(&moved, Err(e) if e.kind() != ErrorKind::WouldBlock) {
            let _ = self.end(0);
        }
        moved
    }

    fn end(&mut self, timeout_ms: c_int) -> Result<()> {
        let raw = self.raw()?;
        self.raw = None; // it is freed in any case
        check(unsafe { sys::rtsan_stream_close(raw, timeout_ms) }).map(drop)
    }

    pub fn shutdown_write(&mut self) -> Result<()> {
        check(unsafe { sys::rtsan_stream_shutdown_write(self.raw()?) }).map(drop)
    }

    /// Close it, and wait until all is sent. Without this what is not sent may be lost.
    pub fn close(mut self, timeout_ms: c_int) -> Result<()> {
        self.end(timeout_ms)
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        let (at, len) = (buf.as_mut_ptr().cast(), buf.len());
        let rc = unsafe { sys::rtsan_stream_read(self.raw()?, at, len, 0) };
        self.moved(rc as i64)
    }
}

impl Write for Stream<'_> {
    fn write(&mut self, buf: &[u8]) -> Result<usize> {
        let (at, len) = (buf.as_ptr().cast(), buf.len());
        let rc = unsafe { sys::rtsan_stream_write(self.raw()?, at, len) };
        self.moved(rc as i64)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        let _ = self.end(0);
    }
}
