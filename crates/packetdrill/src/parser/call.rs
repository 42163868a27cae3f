//! System calls: `connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)`.

use base::Duration;

use super::Reader;
use crate::call::{Call, Controller, Errno, Expected, Operation, Shutdown, SocketOption};
use crate::lexer::{Kind, Position};
use crate::script::SyntaxError;

const CALLS: &str = "socket, bind, listen, accept, connect, fcntl, setsockopt, getsockopt, write, send, sendto, read, \
                     recv, shutdown, close";

/// A call that returns at `returns`, if it blocks.
pub(super) fn read(reader: &mut Reader, returns: Option<Duration>) -> Result<Call, SyntaxError> {
    let at = reader.at();
    let name = reader.word(CALLS)?;
    if !CALLS.split(", ").any(|known| known == name) {
        return Err(SyntaxError::new(at, format!("unknown system call `{name}`; allowed are {CALLS}")));
    }
    reader.sign("(")?;
    let operation = read_operation(reader, &name)?;
    reader.sign(")")?;
    reader.sign("=")?;
    let (expected_at, expected) = (reader.at(), read_expected(reader)?);
    let operation = with_descriptor(operation, expected, expected_at)?;
    let blocks = matches!(
        operation,
        Operation::Accept { .. }
            | Operation::Connect { .. }
            | Operation::Write { .. }
            | Operation::Read { .. }
    );
    if returns.is_some() && !blocks {
        return Err(SyntaxError::new(at, format!("`{name}` does not block, so it has one time")));
    }
    Ok(Call { operation, expected, returns })
}

fn read_operation(reader: &mut Reader, name: &str) -> Result<Operation, SyntaxError> {
    if name == "socket" {
        reader.sign("...")?;
        constant(reader, &["SOCK_STREAM"])?;
        constant(reader, &["IPPROTO_TCP", "0"])?;
        return Ok(Operation::Socket { fd: 0 });
    }
    let fd = descriptor(reader)?;
    Ok(match name {
        "bind" | "connect" => {
            any(reader)?;
            any(reader)?;
            if name == "bind" { Operation::Bind { fd } } else { Operation::Connect { fd } }
        }
        "accept" => {
            any(reader)?;
            any(reader)?;
            Operation::Accept { fd, new: 0 }
        }
        "listen" => {
            reader.sign(",")?;
            Operation::Listen { fd, backlog: reader.whole(65_535)? as u32 }
        }
        "fcntl" => read_fcntl(reader, fd)?,
        "setsockopt" => Operation::SetOption { fd, option: read_option(reader)? },
        "getsockopt" => {
            constant(reader, &["SOL_SOCKET"])?;
            constant(reader, &["SO_ERROR"])?;
            reader.sign(",")?;
            reader.sign("[")?;
            let error = read_error(reader)?;
            reader.sign("]")?;
            reader.sign(",")?;
            reader.sign("[")?;
            reader.whole(4)?;
            reader.sign("]")?;
            Operation::GetError { fd, error }
        }
        "shutdown" => {
            let how = match constant(reader, &["SHUT_RD", "SHUT_WR", "SHUT_RDWR"])? {
                0 => Shutdown::Read,
                1 => Shutdown::Write,
                _ => Shutdown::Both,
            };
            Operation::Shutdown { fd, how }
        }
        "close" => Operation::Close { fd },
        _ => read_transfer(reader, name, fd)?,
    })
}

/// `write`, `send`, `sendto`, `read` and `recv`.
fn read_transfer(reader: &mut Reader, name: &str, fd: i32) -> Result<Operation, SyntaxError> {
    any(reader)?;
    reader.sign(",")?;
    let len = reader.whole(MOST_BYTES)? as usize;
    if matches!(name, "send" | "sendto" | "recv") {
        reader.sign(",")?;
        reader.whole(0)?;
    }
    if name == "sendto" {
        any(reader)?;
        any(reader)?;
    }
    Ok(if matches!(name, "read" | "recv") {
        Operation::Read { fd, len }
    } else {
        Operation::Write { fd, len }
    })
}

fn read_fcntl(reader: &mut Reader, fd: i32) -> Result<Operation, SyntaxError> {
    if constant(reader, &["F_GETFL", "F_SETFL"])? == 0 {
        return Ok(Operation::GetFlags { fd });
    }
    let mut nonblocking = constant(reader, &["O_RDWR", "O_NONBLOCK"])? == 1;
    while reader.take("|") {
        nonblocking |= one_of(reader, &["O_RDWR", "O_NONBLOCK"])? == 1;
    }
    Ok(Operation::SetFlags { fd, nonblocking })
}

/// Bytes that one call may write or read.
const MOST_BYTES: u64 = 1 << 24;

const SOCKET_OPTIONS: [&str; 5] = ["SO_REUSEADDR", "SO_KEEPALIVE", "SO_LINGER", "SO_SNDBUF", "SO_RCVBUF"];
const TCP_OPTIONS: [&str; 7] = [
    "TCP_NODELAY",
    "TCP_CONGESTION",
    "TCP_MAXSEG",
    "TCP_USER_TIMEOUT",
    "TCP_KEEPIDLE",
    "TCP_KEEPINTVL",
    "TCP_KEEPCNT",
];

/// What follows the descriptor in `setsockopt`.
fn read_option(reader: &mut Reader) -> Result<SocketOption, SyntaxError> {
    let level = constant(reader, &["SOL_SOCKET", "SOL_TCP", "IPPROTO_TCP"])?;
    let names: &[&str] = if level == 0 { &SOCKET_OPTIONS } else { &TCP_OPTIONS };
    let name = names[constant(reader, names)?];
    reader.sign(",")?;
    let option = match name {
        "TCP_CONGESTION" => {
            let wrong = reader.unexpected("a controller's name in quotes, 15 characters at most");
            let Kind::Text(text) = reader.kind() else { return Err(wrong) };
            let controller = Controller::new(text).ok_or(wrong)?;
            reader.next();
            SocketOption::Congestion(controller)
        }
        "SO_LINGER" => {
            for part in ["{", "onoff", "=", "1", ",", "linger", "=", "0", "}"] {
                let found = match reader.kind() {
                    Kind::Word(text) | Kind::Number(text) => text == part,
                    Kind::Sign(sign) => *sign == part,
                    _ => false,
                };
                if !found {
                    return Err(reader.unexpected("`{onoff=1, linger=0}`"));
                }
                reader.next();
            }
            SocketOption::LingerZero
        }
        _ => {
            reader.sign("[")?;
            let value_at = reader.at();
            let value = reader.whole(1 << 30)? as u32;
            reader.sign("]")?;
            numeric(name, value, value_at)?
        }
    };
    reader.sign(",")?;
    reader.whole(64)?;
    Ok(option)
}

fn numeric(name: &str, value: u32, at: Position) -> Result<SocketOption, SyntaxError> {
    let fixed = |known: u32, of: SocketOption| {
        let message = format!("`{name}` is {known} and cannot be changed");
        if value == known { Ok(of) } else { Err(SyntaxError::new(at, message)) }
    };
    Ok(match name {
        "SO_REUSEADDR" => SocketOption::ReuseAddress(value != 0),
        "SO_KEEPALIVE" => SocketOption::KeepAlive(value != 0),
        "SO_SNDBUF" => SocketOption::SendBuffer(value),
        "SO_RCVBUF" => SocketOption::ReceiveBuffer(value),
        "TCP_NODELAY" => SocketOption::NoDelay(value != 0),
        "TCP_MAXSEG" => {
            let message = "allowed are 64 to 65495 bytes";
            let mss = u16::try_from(value).ok().filter(|mss| (64..=65_495).contains(mss));
            SocketOption::MaxSegment(mss.ok_or_else(|| SyntaxError::new(at, message))?)
        }
        "TCP_USER_TIMEOUT" => SocketOption::UserTimeout(value),
        "TCP_KEEPIDLE" => SocketOption::KeepIdle(value),
        // What keep-alives of ours have, and Linux's defaults.
        "TCP_KEEPINTVL" => fixed(75, SocketOption::Unchanged)?,
        _ => fixed(9, SocketOption::Unchanged)?,
    })
}

/// `[0]` or `[ECONNRESET]`, without the brackets.
fn read_error(reader: &mut Reader) -> Result<Option<Errno>, SyntaxError> {
    if matches!(reader.kind(), Kind::Number(_)) {
        return reader.whole(0).map(|_| None);
    }
    errno(reader).map(Some)
}

fn errno(reader: &mut Reader) -> Result<Errno, SyntaxError> {
    let names: Vec<&str> = Errno::ALL.iter().map(|(_, name, _)| *name).collect();
    let allowed = names.join(", ");
    let wrong = reader.unexpected(&allowed);
    let word = reader.word(&allowed)?;
    Errno::named(&word).ok_or(wrong)
}

/// What follows `=`, and the words in parentheses that explain it.
fn read_expected(reader: &mut Reader) -> Result<Expected, SyntaxError> {
    let expected = if reader.take("...") {
        Expected::Any
    } else if reader.take("-") {
        if reader.whole(1)? != 1 {
            return Err(reader.unexpected("`-1`"));
        }
        Expected::Error(errno(reader)?)
    } else {
        Expected::Value(reader.whole(1 << 30)? as i64)
    };
    if reader.take("(") {
        while !reader.take(")") {
            if *reader.kind() == Kind::End {
                return Err(reader.unexpected("`)`"));
            }
            reader.next();
        }
    }
    Ok(expected)
}

/// New descriptors are called what the script says that the call returns.
fn with_descriptor(operation: Operation, expected: Expected, at: Position) -> Result<Operation, SyntaxError> {
    let named = match expected {
        Expected::Value(value) => i32::try_from(value).ok(),
        _ => None,
    };
    match operation {
        Operation::Socket { .. } => match named {
            Some(fd) => Ok(Operation::Socket { fd }),
            None => Err(SyntaxError::new(at, "`socket` returns a descriptor; allowed is its number")),
        },
        Operation::Accept { fd, .. } => Ok(Operation::Accept { fd, new: named.unwrap_or(-1) }),
        other => Ok(other),
    }
}

fn descriptor(reader: &mut Reader) -> Result<i32, SyntaxError> {
    reader.whole(1 << 20).map(|fd| fd as i32)
}

/// `, ...`, `, NULL` or `, 0`: an argument that does not matter.
fn any(reader: &mut Reader) -> Result<(), SyntaxError> {
    reader.sign(",")?;
    if reader.take("...") || reader.take_word("NULL") {
        return Ok(());
    }
    Err(reader.unexpected("`...` or `NULL`"))
}

/// `, NAME`: which of `names`.
fn constant(reader: &mut Reader, names: &[&str]) -> Result<usize, SyntaxError> {
    reader.sign(",")?;
    one_of(reader, names)
}

fn one_of(reader: &mut Reader, names: &[&str]) -> Result<usize, SyntaxError> {
    let wrong = || reader.unexpected(&names.join(", "));
    let (Kind::Word(text) | Kind::Number(text)) = reader.kind() else { return Err(wrong()) };
    let found = names.iter().position(|name| name == text).ok_or_else(wrong)?;
    reader.next();
    Ok(found)
}
