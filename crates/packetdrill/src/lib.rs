//! Scripts in packetdrill's language (Cardwell et al., "packetdrill: Scriptable Network Stack Testing, from Sockets to
//! Packets", USENIX ATC 2013), read and run on any TCP that a [`Stack`] drives: ours in virtual time, or the kernel's.
//!
//! A script says when which system calls are made, which segments the peer sends, which are expected of the host, and what
//! holds of `TCP_INFO`. `docs/tcp.md` tells how to write one.
//!
//! Deviations:
//! - one connection a script, and TCP alone;
//! - no shell commands and no Python: an assertion is a small expression over `TCP_INFO`'s fields, and is decided at once;
//! - at the end of a script nothing may have been sent that it does not expect;
//! - timestamps of the host are compared with the script's, as far as both have come since the first.

#![forbid(unsafe_code)]

mod call;
mod event;
mod expression;
mod lexer;
mod option;
mod parser;
mod run;
mod script;
mod segment;
mod stack;
mod translation;

pub use call::{Call, Controller, Errno, Expected, Operation, Shutdown, SocketOption};
pub use event::{Action, Assertion, Event, Time};
pub use expression::{Expression, Field};
pub use lexer::Position;
pub use option::TcpOption;
pub use run::{Failure, run};
pub use script::{Options, Script, Setting, SyntaxError};
pub use segment::{Expectation, Segment};
pub use stack::{Answer, Ends, Stack};
