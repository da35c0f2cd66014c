// SPDX-License-Identifier: BSD-3-Clause
//! Raw bindings of `rtsan.h` and `rtsan_stream.h`, made by bindgen when this is built. All functions
//! are unsafe: the comments of the headers, and the manual pages, say what must hold.
//!
//! `rtsan_query()` comes first: it gets `size_of::<rtsan_caps>()`, and members that an older library
//! does not know are zero. `examples/echo/rtsan.rs` is a safe layer over a part of this.

#![allow(non_camel_case_types)]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
