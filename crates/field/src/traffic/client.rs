//! The client: a thread for each connection of a load, and the report of them all.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time;

use base::{Duration, Instant};
use serde::Serialize;

use super::TrafficError;
use super::measurement::{Distribution, Observation};
use super::offset::{self, Offset};
use super::request::{Answer, Congestion, Direction, Extent, Model, REQUEST_LEN, Request};
use super::sockets::{InUse, Sockets, prepare, read_content, set_congestion, write_content};
use super::stream::{self, Broken, CONTENT, due_times};
use gateway::clock::{monotonic, sleep};
use gateway::signals::Signals;

/// Streams, or transactions at a time, of one load.
pub const MOST_CONNECTIONS: u32 = 500;
/// For a connection to open, unless patience is shorter.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a connection's stack: buffers live elsewhere.
const STACK: usize = 256 * 1024;
/// The longest report that is read, in bytes.
const LONGEST_REPORT: u32 = 4 << 20;

/// How a load meets its server.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Where the server listens.
    pub server: SocketAddr,
    /// What both kernels control congestion with; their own choice unless told.
    pub congestion: Option<Congestion>,
    /// For how long nothing may move on a connection.
    pub patience: Duration,
}

/// Instances of one model, at once.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// Streams, each on a connection of its own.
    Streams {
        /// [`Model::Bulk`] or [`Model::Rate`].
        model: Model,
        /// How many.
        connections: u32,
    },
    /// Transactions, each on a connection of its own.
    Transactions {
        /// [`Model::Transaction`].
        model: Model,
        /// How many in all.
        count: u64,
        /// How many at a time, at most.
        concurrency: u32,
        /// Between the starts of consecutive ones; none: as soon as there is room.
        interval: Option<Duration>,
    },
}

/// What came of a load.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Connections: one for each stream, one for each transaction.
    pub connections: u64,
    /// Bytes at the receivers; of transactions, the replies.
    pub bytes: u64,
    /// From the beginning to the last byte.
    pub seconds: f64,
    /// Bytes over that time.
    pub mbps: f64,
    /// Whole records that came, or transactions.
    pub records: u64,
    /// Records that were due; for rate-controlled streams.
    pub records_due: Option<u64>,
    /// Age of a record at its last byte; a transaction's time from opening to the end of the reply.
    pub latency_ms: Option<Distribution>,
    /// A transaction's time until its connection was open.
    pub connect_ms: Option<Distribution>,
    /// How the clocks compare; for streams.
    pub clock: Option<ClockReport>,
    /// Records that came before they were sent, by the clocks.
    pub before_sent: u64,
    /// Width of the intervals of `throughput_mbps`.
    pub interval_seconds: f64,
    /// Throughput at the receivers over time.
    pub throughput_mbps: Vec<f64>,
}

/// How the two ends' clocks compare.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ClockReport {
    /// Both ends read the same clock.
    pub same_clock: bool,
    /// The server's clock ahead of this end's, in milliseconds.
    pub offset_ms: f64,
    /// By how much that may be wrong, and every latency with it.
    pub uncertainty_ms: f64,
}

/// What a thread tells: its connection's number, and what came of it.
type Told = (u64, Result<(Observation, Observation), TrafficError>);

#[derive(Clone)]
struct Worker {
    options: Options,
    sockets: Sockets,
    moved: Arc<AtomicU64>,
    start: Instant,
}

/// Runs a load to its end; `progress` hears now and then how many bytes have moved here.
///
/// # Errors
/// The first connection that fails ends all the others.
pub fn run(
    options: &Options,
    load: &Load,
    mut interrupted: impl FnMut() -> bool,
    mut progress: impl FnMut(u64),
) -> Result<Report, TrafficError> {
    let worker = Worker {
        options: *options,
        sockets: Sockets::default(),
        moved: Arc::new(AtomicU64::new(0)),
        start: monotonic(),
    };
    let (tell, told) = channel();
    let expected = worker.start(load, &tell)?;
    drop(tell);
    let result = gather(&worker, &told, expected, &mut interrupted, &mut progress);
    worker.sockets.end_all();
    let ((seen, connecting), offset) = result?;
    Ok(report(load, &seen, &connecting, offset))
}

/// Runs a load until its end, or until a signal comes.
///
/// # Errors
/// As [`run`].
pub fn run_until_signal(
    options: &Options,
    load: &Load,
    signals: &mut Signals,
    progress: impl FnMut(u64),
) -> Result<Report, TrafficError> {
    run(options, load, || signals.received(), progress)
}

type Gathered = ((Observation, Observation), Option<Offset>);

fn gather(
    worker: &Worker,
    told: &Receiver<Message>,
    expected: u64,
    interrupted: &mut impl FnMut() -> bool,
    progress: &mut impl FnMut(u64),
) -> Result<Gathered, TrafficError> {
    let (mut seen, mut connecting, mut offset) = (Observation::default(), Observation::default(), None);
    let mut done = 0;
    while done < expected {
        if interrupted() {
            return Err(TrafficError::Interrupted);
        }
        progress(worker.moved.load(Ordering::Relaxed));
        match told.recv_timeout(time::Duration::from_millis(50)) {
            Ok(Message::Clock(found)) => offset = Some(found),
            Ok(Message::Told((connection, result))) => {
                let (stream, connect) = result.map_err(|error| TrafficError::Connection {
                    connection: connection + 1,
                    error: Box::new(error),
                })?;
                seen.merge(&stream);
                connecting.merge(&connect);
                done += 1;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(TrafficError::Thread(io::Error::other("a connection's thread ended early")));
            }
        }
    }
    Ok(((seen, connecting), offset))
}

enum Message {
    Clock(Offset),
    Told(Told),
}

impl Worker {
    /// Starts the threads; how many results they will tell.
    fn start(&self, load: &Load, tell: &Sender<Message>) -> Result<u64, TrafficError> {
        let spawn = |work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().stack_size(STACK).spawn(work).map(drop).map_err(TrafficError::Thread)
        };
        let (worker, tell) = (self.clone(), tell.clone());
        match *load {
            Load::Streams { model, connections } => {
                // The clocks are compared before the line is full, and from a thread, so that a signal is heard.
                spawn(Box::new(move || {
                    let offset = match worker.compare_clocks() {
                        Ok(offset) => offset,
                        Err(error) => return drop(tell.send(Message::Told((0, Err(error))))),
                    };
                    let _ = tell.send(Message::Clock(offset));
                    for connection in 0..connections {
                        let (worker, told) = (worker.clone(), tell.clone());
                        let work = move || {
                            let result = worker.stream(model, connection, &offset);
                            let result = result.map(|seen| (seen, Observation::default()));
                            let _ = told.send(Message::Told((connection.into(), result)));
                        };
                        if let Err(error) = thread::Builder::new().stack_size(STACK).spawn(work) {
                            let error = Err(TrafficError::Thread(error));
                            return drop(tell.send(Message::Told((connection.into(), error))));
                        }
                    }
                }))?;
                Ok(connections.into())
            }
            Load::Transactions { model, count, concurrency, interval } => {
                let next = Arc::new(AtomicU64::new(0));
                for _ in 0..u64::from(concurrency).min(count) {
                    let (worker, told, next) = (worker.clone(), tell.clone(), Arc::clone(&next));
                    spawn(Box::new(move || {
                        loop {
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            if number >= count || worker.sockets.have_ended() {
                                return;
                            }
                            if let Some(interval) = interval {
                                let due = interval.as_nanos().saturating_mul(number);
                                let passed = monotonic().saturating_since(worker.start).as_nanos();
                                sleep(Duration::from_nanos(due.saturating_sub(passed)));
                            }
                            let result = worker.transaction(model, number);
                            let failed = result.is_err();
                            if told.send(Message::Told((number, result))).is_err() || failed {
                                return;
                            }
                        }
                    }))?;
                }
                Ok(count)
            }
        }
    }

    fn connect(&self) -> Result<InUse, TrafficError> {
        let server = self.options.server;
        let failed = |error| TrafficError::Connect { server, error };
        let patience = CONNECT_PATIENCE.min(self.options.patience);
        let socket = TcpStream::connect_timeout(&server, time::Duration::from_nanos(patience.as_nanos()))
            .map_err(failed)?;
        prepare(&socket, self.options.patience).map_err(failed)?;
        if let Some(congestion) = self.options.congestion {
            set_congestion(&socket, congestion)
                .map_err(|error| TrafficError::Congestion(congestion, error))?;
        }
        self.sockets.add(socket).ok_or(TrafficError::Interrupted)
    }

    fn ask(&self, mut socket: &TcpStream, model: Model, stream: u32) -> Result<(), TrafficError> {
        let request = Request { model, stream, congestion: self.options.congestion };
        socket.write_all(&request.emit()).map_err(|error| Broken::of(error, socket, 0))?;
        Ok(())
    }

    fn await_answer(&self, mut socket: &TcpStream) -> Result<(), TrafficError> {
        let mut octet = [0];
        socket.read_exact(&mut octet).map_err(|error| Broken::of(error, socket, 0))?;
        let reason = match Answer::of(octet[0]) {
            Some(Answer::Accepted) => return Ok(()),
            Some(Answer::Busy) => "the server has as many connections as it may",
            Some(Answer::Refused) => "the server refuses the request: another version, or beyond its limits",
            Some(Answer::NoSuchCongestion) => {
                "the server's kernel has no such congestion control, or does not allow it"
            }
            None => "the program that answers is not a traffic server",
        };
        Err(TrafficError::Refused { server: self.options.server, reason })
    }

    fn compare_clocks(&self) -> Result<Offset, TrafficError> {
        let socket = self.connect()?;
        self.ask(&socket, Model::Clock, 0)?;
        self.await_answer(&socket)?;
        Ok(offset::ask(&socket).map_err(|error| Broken::of(error, &socket, 0))?)
    }

    fn stream(&self, model: Model, stream: u32, offset: &Offset) -> Result<Observation, TrafficError> {
        let socket = self.connect()?;
        let origin = monotonic();
        self.ask(&socket, model, stream)?;
        self.await_answer(&socket)?;
        let up = matches!(
            model,
            Model::Bulk { direction: Direction::Up, .. } | Model::Rate { direction: Direction::Up, .. }
        );
        let seen = if up {
            stream::send(&socket, &model, stream, offset, &self.moved)?;
            read_report(&socket)?
        } else {
            stream::receive(&socket, stream, origin, offset, &self.moved)?
        };
        match model {
            Model::Bulk { extent: Extent::Size(expected), .. } if seen.bytes != expected => {
                Err(TrafficError::Incomplete { got: seen.bytes, expected })
            }
            _ => Ok(seen),
        }
    }

    fn transaction(&self, model: Model, number: u64) -> Result<(Observation, Observation), TrafficError> {
        let Model::Transaction { request, reply } = model else { return Ok(Default::default()) };
        // Even, so that the reply's stream is this one's alone.
        let stream = (number as u32) << 1;
        let began = monotonic();
        let socket = self.connect()?;
        let connected = monotonic();
        self.ask(&socket, model, stream)?;
        write_content(&socket, &CONTENT, stream, request - REQUEST_LEN as u64)?;
        self.await_answer(&socket)?;
        read_content(&socket, &CONTENT, stream ^ 1, reply - 1)?;
        let (mut seen, mut connecting) = (Observation::default(), Observation::default());
        let now = monotonic();
        let nanos = |until: Instant| i128::from(until.saturating_since(began).as_nanos());
        seen.on_bytes(now.saturating_since(self.start), reply);
        seen.on_record(nanos(now));
        connecting.on_record(nanos(connected));
        self.moved.fetch_add(reply, Ordering::Relaxed);
        Ok((seen, connecting))
    }
}

/// What the server saw of a stream that went up.
fn read_report(mut socket: &TcpStream) -> Result<Observation, TrafficError> {
    let mut len = [0; 4];
    socket.read_exact(&mut len).map_err(|error| Broken::of(error, socket, 0))?;
    let len = u32::from_be_bytes(len);
    if len > LONGEST_REPORT {
        return Err(TrafficError::Report(format!(
            "it has {len} bytes; at most {LONGEST_REPORT} are allowed"
        )));
    }
    let mut bytes = vec![0; len as usize];
    socket.read_exact(&mut bytes).map_err(|error| Broken::of(error, socket, 0))?;
    let seen: Observation =
        serde_json::from_slice(&bytes).map_err(|error| TrafficError::Report(error.to_string()))?;
    if seen.is_possible() {
        Ok(seen)
    } else {
        Err(TrafficError::Report("its numbers contradict each other".to_owned()))
    }
}

fn report(load: &Load, seen: &Observation, connecting: &Observation, offset: Option<Offset>) -> Report {
    let (connections, records_due) = match *load {
        Load::Streams { model: Model::Rate { rate, record, duration, .. }, connections } => {
            let due = due_times(rate, record, duration).count() as u64;
            (connections.into(), Some(due * u64::from(connections)))
        }
        Load::Streams { connections, .. } => (connections.into(), None),
        Load::Transactions { count, .. } => (count, None),
    };
    let mbps =
        |bytes: u64, seconds: f64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds / 1e6 } else { 0.0 };
    let seconds = Duration::from_nanos(seen.lasted_ns).as_secs_f64();
    let width = seen.series.width().as_secs_f64();
    Report {
        connections,
        bytes: seen.bytes,
        seconds,
        mbps: mbps(seen.bytes, seconds),
        records: seen.records,
        records_due,
        latency_ms: seen.latency.distribution(),
        connect_ms: connecting.latency.distribution(),
        clock: offset.map(|offset| ClockReport {
            same_clock: offset.same_clock,
            offset_ms: offset.nanos as f64 / 1e6,
            uncertainty_ms: offset.uncertainty.as_secs_f64() * 1e3,
        }),
        before_sent: seen.before_sent,
        interval_seconds: width,
        throughput_mbps: seen.series.bins().iter().map(|&bytes| mbps(bytes, width)).collect(),
    }
}
