// SPDX-License-Identifier: BSD-3-Clause
//! Writes the bindings by the program bindgen, from the headers that pkg-config finds. Neither they
//! nor a copy of the headers is in the sources, because both would become older than the library.

use std::path::Path;
use std::{env, process::Command};

const HEADERS: [&str; 3] = ["rtsan_abi.h", "rtsan.h", "rtsan_stream.h"];

/// Run a program. Returns its output; an error ends the build.
fn output(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn main() {
    let flags = output(Command::new("pkg-config").args(["--cflags", "--libs", "librtsan"]));
    let mut folders = vec!["/usr/include"];
    for word in flags.split_whitespace() {
        match word.split_at(2) {
            ("-I", folder) => folders.push(folder),
            ("-L", folder) => println!("cargo:rustc-link-search=native={folder}"),
            ("-l", name) => println!("cargo:rustc-link-lib={name}"),
            _ => panic!("pkg-config: {word} is not expected"),
        }
    }
    // Cargo runs this again if one of these is newer.
    println!("cargo:rerun-if-changed=wrapper.h");
    for folder in &folders {
        for path in HEADERS.map(|name| Path::new(folder).join(name)) {
            if path.exists() {
                println!("cargo:rerun-if-changed={}", path.display());
            }
        }
    }
    for name in ["PKG_CONFIG_PATH", "PKG_CONFIG_SYSROOT_DIR"] {
        println!("cargo:rerun-if-env-changed={name}");
    }

    let bindings = Path::new(&env::var("OUT_DIR").unwrap()).join("bindings.rs");
    output(
        Command::new("bindgen")
            .arg("wrapper.h")
            .arg("--output")
            .arg(bindings)
            .args(["--allowlist-function", "rtsan_.*"])
            .args(["--allowlist-type", "rtsan_.*"])
            .args(["--allowlist-var", "RTSAN_.*"])
            // Constants: a later library may return values that an enum of Rust must not have.
            .args(["--default-enum-style", "consts", "--no-prepend-enum-name"])
            .args(["--with-derive-default", "--size_t-is-usize", "--no-rustfmt-bindings"])
            .arg("--")
            .args(folders.iter().map(|folder| format!("-I{folder}"))),
    );
}
