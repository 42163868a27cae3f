//! System calls of the application.

use base::Duration;

/// A system call and what comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What is called for.
    pub operation: Operation,
    /// What it returns.
    pub expected: Expected,
    /// When it returns, if it blocks: counted as the event's time is.
    pub returns: Option<Duration>,
}

/// What a call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A number.
    Value(i64),
    /// -1 and this.
    Error(Errno),
    /// `...`: whatever.
    Any,
}

/// What a call is for. Descriptors are the script's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new TCP socket, which the script calls `fd`.
    Socket {
        /// Its name.
        fd: i32,
    },
    /// To the host's address and port.
    Bind {
        /// The socket.
        fd: i32,
    },
    /// Accepts connections.
    Listen {
        /// The socket.
        fd: i32,
        /// Half-open connections that it holds.
        backlog: u32,
    },
    /// Takes a connection, which the script calls `new`.
    Accept {
        /// The listening socket.
        fd: i32,
        /// The connection's name.
        new: i32,
    },
    /// To the peer's address and port.
    Connect {
        /// The socket.
        fd: i32,
    },
    /// `fcntl(fd, F_GETFL)`.
    GetFlags {
        /// The socket.
        fd: i32,
    },
    /// `fcntl(fd, F_SETFL, O_RDWR|O_NONBLOCK)`, or without it.
    SetFlags {
        /// The socket.
        fd: i32,
        /// Whether calls return at once.
        nonblocking: bool,
    },
    /// `setsockopt`.
    SetOption {
        /// The socket.
        fd: i32,
        /// What is set.
        option: SocketOption,
    },
    /// `getsockopt` of `SO_ERROR`.
    GetError {
        /// The socket.
        fd: i32,
        /// What it tells; `None` is 0.
        error: Option<Errno>,
    },
    /// `write`, `send` and `sendto`.
    Write {
        /// The socket.
        fd: i32,
        /// Bytes.
        len: usize,
    },
    /// `read` and `recv`.
    Read {
        /// The socket.
        fd: i32,
        /// Bytes at most.
        len: usize,
    },
    /// `shutdown`.
    Shutdown {
        /// The socket.
        fd: i32,
        /// Which way.
        how: Shutdown,
    },
    /// `close`.
    Close {
        /// The socket.
        fd: i32,
    },
}

/// Which half of a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// `SHUT_RD`.
    Read,
    /// `SHUT_WR`.
    Write,
    /// `SHUT_RDWR`.
    Both,
}

/// A socket option and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketOption {
    /// `SO_REUSEADDR`.
    ReuseAddress(bool),
    /// `SO_KEEPALIVE`.
    KeepAlive(bool),
    /// `SO_LINGER` of zero seconds: `close` resets.
    LingerZero,
    /// `SO_SNDBUF`, bytes.
    SendBuffer(u32),
    /// `SO_RCVBUF`, bytes.
    ReceiveBuffer(u32),
    /// `TCP_NODELAY`.
    NoDelay(bool),
    /// `TCP_MAXSEG`, bytes.
    MaxSegment(u16),
    /// `TCP_USER_TIMEOUT`, milliseconds.
    UserTimeout(u32),
    /// `TCP_KEEPIDLE`, seconds.
    KeepIdle(u32),
    /// `TCP_KEEPINTVL` or `TCP_KEEPCNT`, as they are anyway.
    Unchanged,
    /// `TCP_CONGESTION`: the controller's name.
    Congestion(Controller),
}

/// The name of a congestion controller; at most 15 characters, as in the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Controller {
    name: [u8; 15],
    len: u8,
}

impl Controller {
    /// None if the name is too long.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let mut name = [0; 15];
        name.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { name, len: text.len() as u8 })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        str::from_utf8(&self.name[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl core::fmt::Debug for Controller {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", self.name())
    }
}

/// An error number, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// Nothing there yet.
    Eagain,
    /// The connection is being opened.
    Einprogress,
    /// The peer answered the SYN with a reset.
    Econnrefused,
    /// The peer reset the connection.
    Econnreset,
    /// This side has finished.
    Epipe,
    /// The peer did not answer.
    Etimedout,
    /// There is no connection.
    Enotconn,
    /// It cannot be so.
    Einval,
    /// The port is taken.
    Eaddrinuse,
    /// There is no way to the peer.
    Ehostunreach,
    /// There is no such descriptor.
    Ebadf,
}

impl Errno {
    /// All of them, their names and Linux's numbers.
    pub const ALL: [(Self, &'static str, i32); 11] = [
        (Self::Eagain, "EAGAIN", 11),
        (Self::Einprogress, "EINPROGRESS", 115),
        (Self::Econnrefused, "ECONNREFUSED", 111),
        (Self::Econnreset, "ECONNRESET", 104),
        (Self::Epipe, "EPIPE", 32),
        (Self::Etimedout, "ETIMEDOUT", 110),
        (Self::Enotconn, "ENOTCONN", 107),
        (Self::Einval, "EINVAL", 22),
        (Self::Eaddrinuse, "EADDRINUSE", 98),
        (Self::Ehostunreach, "EHOSTUNREACH", 113),
        (Self::Ebadf, "EBADF", 9),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(errno, ..)| *errno == self).map_or("", |(_, name, _)| name)
    }

    /// The error with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(errno, ..)| *errno)
    }

    /// The error with this number in Linux.
    #[must_use]
    pub fn numbered(number: i32) -> Option<Self> {
        Self::ALL.iter().find(|(.., known)| *known == number).map(|(errno, ..)| *errno)
    }
}
