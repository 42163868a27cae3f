//! A host of ours in virtual time, and its sockets.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use base::units::Size;
use base::{Duration, Instant, Rng, SeqNum};
use longhaul_tcp::{
    Congestion, Connection, ConnectionError, ConnectionId, CubicConfig, CubicVariant, Event, Failure, Host,
    State, TcpConfig,
};
use packetdrill::{Answer, Ends, Errno, Field, Operation, Script, Shutdown, SocketOption, Stack};

use super::info;

/// A host, its clock and its sockets.
pub(crate) struct VirtualHost {
    now: Instant,
    host: Host,
    ends: Ends,
    /// What a new socket has.
    config: TcpConfig,
    sockets: BTreeMap<i32, Socket>,
    /// Connections that nobody has accepted.
    accepted: VecDeque<ConnectionId>,
    /// The connection that assertions are about.
    current: Option<ConnectionId>,
    sent: VecDeque<(Instant, Vec<u8>)>,
}

struct Socket {
    config: TcpConfig,
    keep_alive: bool,
    keep_idle: Duration,
    resets: bool,
    listens: bool,
    connection: Option<ConnectionId>,
    /// An error is told once.
    told: bool,
}

/// The initial sequence number: numbers wrap early.
const ISS: SeqNum = SeqNum(u32::MAX - 5_000);
/// `tcp_keepalive_time` of Linux.
const KEEP_IDLE: Duration = Duration::from_secs(7_200);

impl VirtualHost {
    /// A host with the settings of a script.
    pub(crate) fn new(script: &Script) -> Result<Self, String> {
        let ends = Ends::of(script.options.ipv6);
        let config = settings(script)?;
        Ok(Self {
            now: Instant::ZERO,
            host: Host::new(ends.host, Rng::named(1, "packetdrill")),
            ends,
            config,
            sockets: BTreeMap::new(),
            accepted: VecDeque::new(),
            current: None,
            sent: VecDeque::new(),
        })
    }

    fn drain(&mut self) {
        while let Some((id, event)) = self.host.poll_event() {
            if matches!(event, Event::Accepted { .. }) {
                self.accepted.push_back(id);
                self.current = Some(id);
            }
        }
        while let Some(packet) = self.host.poll_transmit(self.now) {
            self.sent.push_back((self.now, packet.to_vec()));
        }
    }

    fn socket(&mut self, fd: i32) -> Result<&mut Socket, String> {
        self.sockets.get_mut(&fd).ok_or_else(|| format!("no socket {fd}"))
    }

    fn id(&mut self, fd: i32) -> Result<Option<ConnectionId>, String> {
        self.socket(fd).map(|socket| socket.connection)
    }

    fn connection(&self, id: ConnectionId) -> Result<&Connection, String> {
        self.host.connection(id).ok_or_else(|| "the connection is gone".to_owned())
    }

    /// Why a connection has failed, the first time that somebody asks.
    fn error(&mut self, fd: i32) -> Result<Option<Errno>, String> {
        let Some(id) = self.id(fd)? else { return Ok(None) };
        let failure = self.host.connection(id).and_then(Connection::failure);
        let socket = self.socket(fd)?;
        let errno = failure.map(errno).filter(|_| !socket.told);
        socket.told |= errno.is_some();
        Ok(errno)
    }

    fn set(&mut self, fd: i32, option: SocketOption) -> Result<(), String> {
        let socket = self.socket(fd)?;
        if option == SocketOption::LingerZero {
            socket.resets = true;
            return Ok(());
        }
        if (socket.listens || socket.connection.is_some())
            && !matches!(option, SocketOption::ReuseAddress(_) | SocketOption::Unchanged)
        {
            return Err("options of ours are set before `connect` or `listen`".to_owned());
        }
        let config = &mut socket.config;
        match option {
            SocketOption::ReuseAddress(_) | SocketOption::LingerZero | SocketOption::Unchanged => {}
            SocketOption::KeepAlive(on) => socket.keep_alive = on,
            SocketOption::KeepIdle(seconds) => socket.keep_idle = Duration::from_secs(seconds.into()),
            SocketOption::SendBuffer(bytes) => config.window.send_buffer = Size(bytes.into()),
            SocketOption::ReceiveBuffer(bytes) => {
                config.window.receive_buffer = Size(bytes.into());
                config.window.autotuning = false;
            }
            SocketOption::NoDelay(on) => config.nagle = !on,
            SocketOption::MaxSegment(mss) => config.mss = Some(mss),
            SocketOption::UserTimeout(ms) => {
                config.limits.user_timeout = (ms > 0).then(|| Duration::from_millis(ms.into()));
            }
            SocketOption::Congestion(controller) => {
                config.congestion = match controller.name() {
                    "reno" => Congestion::Reno,
                    "cubic" => Congestion::Cubic(CubicConfig { variant: CubicVariant::Linux }),
                    "bbr" => Congestion::Bbr,
                    name => {
                        return Err(format!(
                            "no controller {name:?}; reno, cubic, bbr, or `--set congestion=...`"
                        ));
                    }
                }
            }
        }
        config.limits.keep_alive = socket.keep_alive.then_some(socket.keep_idle);
        Ok(())
    }

    fn connect(&mut self, fd: i32) -> Result<Answer, String> {
        if let Some(id) = self.id(fd)? {
            let state = self.connection(id)?.state();
            return Ok(match self.error(fd)? {
                Some(errno) => Answer::Error(errno),
                None if state == State::SynSent => Answer::Blocks,
                None => Answer::Value(0),
            });
        }
        let config = self.socket(fd)?.config.clone();
        let remote = SocketAddr::new(self.ends.peer, Ends::PORT);
        let id = self.host.connect(self.now, remote, &config).map_err(|error| error.to_string())?;
        self.socket(fd)?.connection = Some(id);
        self.current = Some(id);
        Ok(Answer::Blocks)
    }

    fn accept(&mut self, fd: i32, new: i32) -> Result<Answer, String> {
        let config = self.socket(fd)?.config.clone();
        let Some(id) = self.accepted.pop_front() else { return Ok(Answer::Blocks) };
        let socket = Socket { connection: Some(id), ..Socket::new(config) };
        self.sockets.insert(new, socket);
        Ok(Answer::Value(new.into()))
    }

    fn write(&mut self, fd: i32, len: usize) -> Result<Answer, String> {
        let Some(id) = self.id(fd)? else { return Ok(Answer::Error(Errno::Epipe)) };
        if let Some(errno) = self.error(fd)? {
            return Ok(Answer::Error(errno));
        }
        Ok(match self.host.write(self.now, id, &vec![0; len]) {
            Ok(0) if len > 0 => Answer::Blocks,
            Ok(taken) => Answer::Value(taken as i64),
            Err(_) => Answer::Error(Errno::Epipe),
        })
    }

    fn read(&mut self, fd: i32, len: usize) -> Result<Answer, String> {
        let Some(id) = self.id(fd)? else { return Ok(Answer::Error(Errno::Enotconn)) };
        Ok(match self.host.read(self.now, id, &mut vec![0; len]) {
            Ok(0) if self.connection(id)?.peer_finished() => Answer::Value(0),
            Ok(0) => Answer::Blocks,
            Ok(count) => Answer::Value(count as i64),
            Err(ConnectionError::Failed(_)) => self.error(fd)?.map_or(Answer::Value(0), Answer::Error),
            Err(error) => return Err(error.to_string()),
        })
    }

    fn close(&mut self, fd: i32) -> Result<Answer, String> {
        let Some(socket) = self.sockets.remove(&fd) else { return Ok(Answer::Error(Errno::Ebadf)) };
        if socket.listens {
            return Err("a listening socket of ours stays open; leave `close` out".to_owned());
        }
        if let Some(id) = socket.connection.filter(|id| self.host.connection(*id).is_some()) {
            let end = if socket.resets { Host::abort } else { Host::close };
            end(&mut self.host, self.now, id).map_err(|error| error.to_string())?;
        }
        Ok(Answer::Value(0))
    }

    fn operate(&mut self, operation: &Operation) -> Result<Answer, String> {
        match *operation {
            Operation::Socket { fd } => {
                let socket = Socket::new(self.config.clone());
                self.sockets.insert(fd, socket);
                return Ok(Answer::Value(fd.into()));
            }
            Operation::Bind { fd } => drop(self.socket(fd)?),
            Operation::SetFlags { fd, .. } => drop(self.socket(fd)?),
            Operation::GetFlags { fd } => return self.socket(fd).map(|_| Answer::Value(READ_AND_WRITE)),
            Operation::Listen { fd, backlog } => {
                let socket = self.socket(fd)?;
                socket.listens = true;
                let config = socket.config.clone().with(|it| it.limits.backlog = backlog.max(1));
                self.host.listen(Ends::PORT, &config).map_err(|error| error.to_string())?;
            }
            Operation::Accept { fd, new } => return self.accept(fd, new),
            Operation::Connect { fd } => return self.connect(fd),
            Operation::SetOption { fd, option } => self.set(fd, option)?,
            Operation::GetError { fd, error } => {
                let got = self.error(fd)?;
                if got != error {
                    return Err(format!("SO_ERROR is {}", got.map_or("0", Errno::name)));
                }
            }
            Operation::Write { fd, len } => return self.write(fd, len),
            Operation::Read { fd, len } => return self.read(fd, len),
            Operation::Shutdown { how: Shutdown::Read, .. } => {
                return Err("SHUT_RD is not supported".to_owned());
            }
            Operation::Shutdown { fd, .. } => {
                let Some(id) = self.id(fd)? else { return Ok(Answer::Error(Errno::Enotconn)) };
                if self.host.finish(self.now, id).is_err() {
                    return Ok(Answer::Error(Errno::Enotconn));
                }
            }
            Operation::Close { fd } => return self.close(fd),
        }
        Ok(Answer::Value(0))
    }
}

/// `O_RDWR` of Linux.
const READ_AND_WRITE: i64 = 2;

impl Socket {
    fn new(config: TcpConfig) -> Self {
        Self {
            config,
            keep_alive: false,
            keep_idle: KEEP_IDLE,
            resets: false,
            listens: false,
            connection: None,
            told: false,
        }
    }
}

impl Stack for VirtualHost {
    fn now(&self) -> Instant {
        self.now
    }

    fn pass(&mut self, until: Instant) -> Result<(), String> {
        match self.host.poll_timeout().filter(|due| *due <= until) {
            Some(due) => {
                self.now = self.now.max(due);
                self.host.handle_timeout(self.now);
                self.drain();
            }
            None => self.now = self.now.max(until),
        }
        Ok(())
    }

    fn poll_packet(&mut self) -> Option<(Instant, Vec<u8>)> {
        self.sent.pop_front()
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), String> {
        // What is of no use to the host is for the script to tell.
        let _ = self.host.handle_packet(self.now, packet);
        self.drain();
        Ok(())
    }

    fn call(&mut self, operation: &Operation) -> Result<Answer, String> {
        let answer = self.operate(operation)?;
        self.drain();
        Ok(answer)
    }

    fn info(&mut self, field: Field) -> Result<i64, String> {
        let id = self.current.ok_or("there is no connection")?;
        Ok(info::value(self.connection(id)?, field))
    }
}

const fn errno(failure: Failure) -> Errno {
    match failure {
        Failure::Refused => Errno::Econnrefused,
        Failure::Reset => Errno::Econnreset,
        Failure::TimedOut => Errno::Etimedout,
        Failure::Aborted => Errno::Epipe,
    }
}

/// What the option lines say, in TOML.
fn settings(script: &Script) -> Result<TcpConfig, String> {
    let mut text = String::new();
    let mut config = TcpConfig::default();
    for setting in &script.options.settings {
        text.push_str(&setting.line);
        text.push('\n');
        config = base::config::parse("", &text).map_err(|error| {
            let message = error.to_string();
            let bare = message.trim_start_matches(|c: char| c == ':' || c == ' ' || c.is_ascii_digit());
            format!("{}: {bare}", setting.at)
        })?;
    }
    Ok(config.with(|it| {
        it.mtu = Some(script.options.mtu);
        it.initial_sequence = Some(ISS);
        let is_set = script.options.settings.iter().any(|setting| setting.line.starts_with("offload"));
        it.offload = script.options.offload || (is_set && it.offload);
    }))
}
