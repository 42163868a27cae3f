//! The kernel's TCP in a network namespace: real sockets, and a TUN device that leads to the peer.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown as Way, SocketAddr};
use std::os::fd::AsFd as _;
use std::process::Command;
use std::time;

use base::{Duration, Instant, Prefix};
use gateway::clock::Clock;
use gateway::readiness::{self, Interest};
use gateway::routing::Routing;
use gateway::tun::{Settings, Tun, Written};
use longhaul_field::tcp_info::TcpInfo;
use packetdrill::{Answer, Ends, Errno, Field, Operation, Script, Shutdown, SocketOption, Stack};
use socket2::{Domain, Socket, TcpKeepalive, Type};

/// The kernel, in the namespace of the thread that made it.
pub(crate) struct Kernel {
    clock: Clock,
    tun: Tun,
    ends: Ends,
    sockets: BTreeMap<i32, Entry>,
    /// The connection that assertions are about.
    current: Option<i32>,
    sent: VecDeque<(Instant, Vec<u8>)>,
}

struct Entry {
    socket: Socket,
    /// `connect` was called.
    connects: bool,
}

/// How long to wait at most before calls are tried again.
const STEP: Duration = Duration::from_millis(1);
const DEVICE: &str = "tun0";
/// That of the preset `linux`; a system's may be another.
const CONTROLLER: &[u8] = b"cubic";

impl Kernel {
    /// Makes the device.
    pub(crate) fn new(script: &Script) -> Result<Self, String> {
        if script.options.ipv6 {
            return Err("the kernel runs scripts of IPv4 alone".to_owned());
        }
        let ends = Ends::of(false);
        let prefix = |text: String| text.parse::<Prefix>().map_err(|error| format!("{error:?}"));
        let wrong = |error: io::Error| error.to_string();
        let tun = Tun::open(DEVICE, false).map_err(wrong)?;
        let addresses = [prefix(format!("{}/24", ends.host))?];
        Settings { mtu: script.options.mtu.into(), addresses: &addresses, gso_max_size: None }
            .apply(DEVICE)
            .map_err(wrong)?;
        let routing = Routing::new(DEVICE, &[prefix(format!("{}/32", ends.peer))?], None, false);
        routing.set().map_err(|error| error.to_string())?;
        if !script.options.offload {
            let command = ["link", "set", "dev", DEVICE, "gso_max_segs", "1"];
            let status = Command::new("ip").args(command).status().map_err(wrong)?;
            if !status.success() {
                return Err(format!("ip {}: {status}", command.join(" ")));
            }
        }
        readiness::wake_exactly();
        let (sockets, sent) = (BTreeMap::new(), VecDeque::new());
        Ok(Self { clock: Clock::start(), tun, ends, sockets, current: None, sent })
    }

    fn socket(&self, fd: i32) -> Result<&Socket, String> {
        self.sockets.get(&fd).map(|entry| &entry.socket).ok_or_else(|| format!("no socket {fd}"))
    }

    fn collect(&mut self) -> Result<(), String> {
        while let Some(packet) = self.tun.read().map_err(|error| error.to_string())? {
            self.sent.push_back((self.clock.now(), packet.to_vec()));
        }
        Ok(())
    }

    fn open(&mut self, fd: i32) -> io::Result<Answer> {
        let socket = Socket::new(Domain::for_address(self.host()), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_congestion(CONTROLLER)?;
        self.sockets.insert(fd, Entry { socket, connects: false });
        Ok(Answer::Value(fd.into()))
    }

    fn host(&self) -> SocketAddr {
        SocketAddr::new(self.ends.host, Ends::PORT)
    }

    fn connect(&mut self, fd: i32) -> Result<Answer, String> {
        let peer = SocketAddr::new(self.ends.peer, Ends::PORT);
        let entry = self.sockets.get_mut(&fd).ok_or_else(|| format!("no socket {fd}"))?;
        self.current = Some(fd);
        if !std::mem::replace(&mut entry.connects, true) {
            return Ok(answer(entry.socket.connect(&peer.into()).map(|()| 0)));
        }
        match entry.socket.take_error() {
            Ok(None) if entry.socket.peer_addr().is_err() => Ok(Answer::Blocks),
            Ok(error) => Ok(answer(error.map_or(Ok(0), Err))),
            Err(error) => Err(error.to_string()),
        }
    }

    fn accept(&mut self, fd: i32, new: i32) -> Result<Answer, String> {
        let accepted = self.socket(fd)?.accept();
        Ok(answer(accepted.and_then(|(socket, _)| {
            socket.set_nonblocking(true)?;
            self.sockets.insert(new, Entry { socket, connects: true });
            self.current = Some(new);
            Ok(new.into())
        })))
    }

    fn operate(&mut self, operation: &Operation) -> Result<Answer, String> {
        let done = |result: io::Result<()>| answer(result.map(|()| 0));
        Ok(match *operation {
            Operation::Socket { fd } => self.open(fd).map_err(|error| error.to_string())?,
            Operation::Bind { fd } => done(self.socket(fd)?.bind(&self.host().into())),
            Operation::Listen { fd, backlog } => done(self.socket(fd)?.listen(backlog as i32)),
            Operation::Accept { fd, new } => self.accept(fd, new)?,
            Operation::Connect { fd } => self.connect(fd)?,
            Operation::GetFlags { .. } => Answer::Value(READ_AND_WRITE),
            // Calls never block here; who runs the script knows which may.
            Operation::SetFlags { .. } => Answer::Value(0),
            Operation::SetOption { fd, option } => done(set(self.socket(fd)?, option)),
            Operation::GetError { fd, error } => {
                let got = self.socket(fd)?.take_error().map_err(|error| error.to_string())?;
                let got = got
                    .and_then(|error| error.raw_os_error())
                    .map(|number| (number, Errno::numbered(number)));
                if got.map(|(_, errno)| errno) != error.map(Some) {
                    return Err(format!("SO_ERROR is {got:?}"));
                }
                Answer::Value(0)
            }
            Operation::Write { fd, len } => {
                let mut socket = self.socket(fd)?;
                answer(socket.write(&vec![0; len]).map(|len| len as i64))
            }
            Operation::Read { fd, len } => {
                let mut socket = self.socket(fd)?;
                answer(socket.read(&mut vec![0; len]).map(|len| len as i64))
            }
            Operation::Shutdown { fd, how } => done(self.socket(fd)?.shutdown(match how {
                Shutdown::Read => Way::Read,
                Shutdown::Write => Way::Write,
                Shutdown::Both => Way::Both,
            })),
            Operation::Close { fd } => {
                self.sockets.remove(&fd).map_or(Answer::Error(Errno::Ebadf), |_| Answer::Value(0))
            }
        })
    }
}

/// `O_RDWR`.
const READ_AND_WRITE: i64 = 2;

fn set(socket: &Socket, option: SocketOption) -> io::Result<()> {
    match option {
        SocketOption::ReuseAddress(on) => socket.set_reuse_address(on),
        SocketOption::Unchanged => Ok(()),
        SocketOption::KeepAlive(on) => socket.set_keepalive(on),
        SocketOption::KeepIdle(seconds) => socket
            .set_tcp_keepalive(&TcpKeepalive::new().with_time(time::Duration::from_secs(seconds.into()))),
        SocketOption::LingerZero => socket.set_linger(Some(time::Duration::ZERO)),
        SocketOption::SendBuffer(bytes) => socket.set_send_buffer_size(bytes as usize),
        SocketOption::ReceiveBuffer(bytes) => socket.set_recv_buffer_size(bytes as usize),
        SocketOption::NoDelay(on) => socket.set_tcp_nodelay(on),
        SocketOption::MaxSegment(mss) => socket.set_tcp_mss(mss.into()),
        SocketOption::UserTimeout(ms) => {
            socket.set_tcp_user_timeout(Some(time::Duration::from_millis(ms.into())))
        }
        SocketOption::Congestion(controller) => socket.set_tcp_congestion(controller.name().as_bytes()),
    }
}

fn answer(result: io::Result<i64>) -> Answer {
    let error = match result {
        Ok(value) => return Answer::Value(value),
        Err(error) => error,
    };
    match error.raw_os_error().and_then(Errno::numbered) {
        Some(Errno::Eagain | Errno::Einprogress) => Answer::Blocks,
        Some(errno) => Answer::Error(errno),
        None => Answer::Error(Errno::Einval),
    }
}

impl Stack for Kernel {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn pass(&mut self, until: Instant) -> Result<(), String> {
        let span = until.saturating_since(self.clock.now());
        // Nothing tells that a call may return: whoever waits for one asks again.
        let span = span.min(STEP);
        readiness::wait([Interest::read(self.tun.as_fd())], Some(span)).map_err(|error| error.to_string())?;
        self.collect()
    }

    fn poll_packet(&mut self) -> Option<(Instant, Vec<u8>)> {
        self.sent.pop_front()
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), String> {
        match self.tun.write(packet) {
            Written::Yes => self.collect(),
            other => Err(format!("the device does not take the packet: {other:?}")),
        }
    }

    fn call(&mut self, operation: &Operation) -> Result<Answer, String> {
        let answer = self.operate(operation)?;
        self.collect()?;
        Ok(answer)
    }

    fn info(&mut self, field: Field) -> Result<i64, String> {
        let fd = self.current.ok_or("there is no connection")?;
        let info = TcpInfo::of(self.socket(fd)?).map_err(|error| error.to_string())?;
        let (offset, len) = place(field);
        let value = info.number(offset, len).ok_or_else(|| format!("this kernel has no {field}"))?;
        i64::try_from(value).map_err(|error| error.to_string())
    }
}

/// Where `linux/tcp.h` has the field, and its bytes.
const fn place(field: Field) -> (usize, usize) {
    match field {
        Field::State => (0, 1),
        Field::CaState => (1, 1),
        Field::Retransmits => (2, 1),
        Field::Backoff => (4, 1),
        Field::Rto => (8, 4),
        Field::SndMss => (16, 4),
        Field::Unacked => (24, 4),
        Field::Sacked => (28, 4),
        Field::Lost => (32, 4),
        Field::Retrans => (36, 4),
        Field::Rtt => (68, 4),
        Field::RttVar => (72, 4),
        Field::SndSsthresh => (76, 4),
        Field::SndCwnd => (80, 4),
        Field::TotalRetrans => (100, 4),
        Field::BytesAcked => (120, 8),
        Field::BytesReceived => (128, 8),
        Field::NotsentBytes => (144, 4),
        Field::MinRtt => (148, 4),
        Field::BytesRetrans => (208, 8),
        Field::DsackDups => (216, 4),
        Field::SndWnd => (228, 4),
    }
}
