//! Server and client over loopback, and peers that do not behave.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use base::wire::record::{HEADER_LEN, Header};
use base::{Duration, Instant, Rate};

use super::request::{Direction, Extent, Model, REQUEST_LEN, Request};
use super::{Broken, Counters, Load, Options, Report, Server, TrafficError, run};
use gateway::clock::{Clock, sleep};

/// A server on a thread, ended when asked for its counters.
struct Served {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: JoinHandle<(Counters, Vec<String>)>,
}

impl Served {
    fn start(limit: usize) -> Self {
        let server = Server::new(([127, 0, 0, 1], 0).into(), limit, Duration::from_secs(10)).unwrap();
        let (address, ended) = (server.address().unwrap(), Arc::new(AtomicBool::new(false)));
        let asked = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            let mut complaints = Vec::new();
            let complain = |text: &str| complaints.push(text.to_owned());
            let counters = server.run_until(|| asked.load(Ordering::Relaxed), complain).unwrap();
            (counters, complaints)
        });
        Self { address, ended, thread }
    }

    fn run(&self, load: &Load) -> Result<Report, TrafficError> {
        run(&options(self.address), load, || false, |_| {})
    }

    /// Waits until all that came has been settled, and ends it.
    fn end(self) -> (Counters, Vec<String>) {
        sleep(Duration::from_millis(300));
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn options(server: SocketAddr) -> Options {
    Options { server, congestion: None, patience: Duration::from_secs(5) }
}

fn bulk(direction: Direction, size: u64, connections: u32) -> Load {
    Load::Streams { model: Model::Bulk { direction, extent: Extent::Size(size) }, connections }
}

fn rate(direction: Direction) -> Load {
    let model = Model::Rate {
        direction,
        rate: Rate::from_bps(800_000),
        record: 1000,
        duration: Duration::from_millis(500),
    };
    Load::Streams { model, connections: 3 }
}

fn transactions(count: u64, concurrency: u32) -> Load {
    Load::Transactions {
        model: Model::Transaction { request: 200, reply: 8000 },
        count,
        concurrency,
        interval: None,
    }
}

#[test]
fn all_models_run_both_ways_and_count_every_byte() {
    let served = Served::start(64);
    for direction in [Direction::Down, Direction::Up] {
        for size in [13, 16_384, 16_390, 3_000_001] {
            let report = served.run(&bulk(direction, size, 4)).unwrap();
            assert_eq!(report.bytes, 4 * size, "{direction:?}");
            assert!(report.clock.unwrap().same_clock);
        }
        let report = served.run(&rate(direction)).unwrap();
        // 100 records a second for half a second, on three connections.
        assert_eq!(report.records_due, Some(150));
        assert!(report.records <= 150 && report.bytes == report.records * 1000, "{report:?}");
        assert_eq!(report.latency_ms.unwrap().n, report.records);
        assert_eq!(report.before_sent, 0);
        // The last record is due after 490 ms: nothing is sent before its time.
        assert!(report.records < 150 || report.seconds > 0.48, "{} s", report.seconds);
    }
    let report = served.run(&transactions(40, 8)).unwrap();
    assert_eq!((report.records, report.bytes), (40, 40 * 8000));
    let [connect, whole] = [report.connect_ms.unwrap(), report.latency_ms.unwrap()];
    assert!(connect.n == 40 && connect.max <= whole.max);
    let timed = Extent::Duration(Duration::from_millis(300));
    let model = Model::Bulk { direction: Direction::Down, extent: timed };
    let report = served.run(&Load::Streams { model, connections: 2 }).unwrap();
    assert!(report.bytes > 0 && report.seconds > 0.29, "{} s", report.seconds);
    let (counters, complaints) = served.end();
    assert_eq!(counters.connections, counters.completed, "{counters:?} {complaints:?}");
}

#[test]
fn many_clients_of_different_models_share_a_server() {
    let served = Served::start(100);
    thread::scope(|scope| {
        let served = &served;
        let loads = [
            bulk(Direction::Down, 2_000_000, 10),
            bulk(Direction::Up, 2_000_000, 10),
            rate(Direction::Down),
            rate(Direction::Up),
            transactions(200, 10),
        ];
        let clients = loads.map(|load| scope.spawn(move || served.run(&load)));
        for client in clients {
            client.join().unwrap().unwrap();
        }
    });
    let (counters, complaints) = served.end();
    assert_eq!((counters.connections, counters.completed), (230, 230), "{complaints:?}");
}

#[test]
fn hostile_clients_are_counted_and_told_of_once() {
    let served = Served::start(8);
    let speak = |bytes: &[u8]| {
        let mut socket = TcpStream::connect(served.address).unwrap();
        socket.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        answer
    };
    for _ in 0..3 {
        assert_eq!(speak(b"GET / HTTP/1.0\r\n\r\n").first().copied().unwrap_or(b'-'), b'-');
    }
    let model = Model::Bulk { direction: Direction::Up, extent: Extent::Size(1000) };
    let request = Request { model, stream: 0, congestion: None }.emit();
    // Content that is not the stream's, a record that cannot be, and a stream that breaks off.
    let wrong = [&Header { stamp: Instant::ZERO, len: 20 }.emit()[..], &[0x5a; 8]].concat();
    let long = Header { stamp: Instant::ZERO, len: u32::MAX }.emit();
    for stream in [&wrong[..], &long] {
        assert_eq!(speak(&[&request[..], stream].concat()).first().copied().unwrap_or(b'+'), b'+');
    }
    drop(TcpStream::connect(served.address).map(|mut socket| socket.write_all(&request)));
    drop(TcpStream::connect(served.address).map(|mut socket| socket.write_all(&request[..30])));
    // It serves all the same.
    assert_eq!(served.run(&bulk(Direction::Down, 100_000, 1)).unwrap().bytes, 100_000);
    let (counters, complaints) = served.end();
    assert_eq!((counters.refused_request, counters.broken, counters.silent), (3, 3, 1), "{complaints:?}");
    let requests = complaints.iter().filter(|text| text.contains("request refused")).count();
    assert_eq!(requests, 1, "{complaints:?}");
}

#[test]
fn more_than_the_limit_are_refused_by_name() {
    let served = Served::start(2);
    let idle: Vec<_> = (0..2).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    sleep(Duration::from_millis(200));
    let error = served.run(&transactions(1, 1)).unwrap_err().to_string();
    assert!(error.contains("as many connections as it may"), "{error}");
    drop(idle);
    let (counters, _) = served.end();
    assert_eq!((counters.refused_busy, counters.silent), (1, 2));
}

/// A server that answers one stream and then does `then`; the clocks are compared as they should.
fn impostor(then: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut request = [0; REQUEST_LEN];
            socket.read_exact(&mut request).unwrap();
            socket.write_all(b"+").unwrap();
            if Request::parse(&request).unwrap().model == Model::Clock {
                super::offset::answer(&socket).unwrap();
            } else {
                then(socket);
            }
        }
    });
    address
}

fn fails(address: SocketAddr, direction: Direction, patience: Duration) -> TrafficError {
    let clock = Clock::start();
    let options = Options { patience, ..options(address) };
    let result = run(&options, &bulk(direction, 50_000_000, 1), || false, |_| {});
    let waited = clock.now().saturating_since(Instant::ZERO);
    assert!(waited < patience + Duration::from_secs(20), "it took {waited}");
    match result.unwrap_err() {
        TrafficError::Connection { connection: 1, error } => *error,
        other => panic!("{other}"),
    }
}

#[test]
fn a_server_that_goes_away_or_lies_is_named_within_bounded_time() {
    let patience = Duration::from_secs(1);
    let gone = impostor(|mut socket| {
        let _ = socket.write_all(&Header { stamp: Instant::ZERO, len: 5000 }.emit());
    });
    let error = fails(gone, Direction::Down, patience);
    assert!(matches!(error, TrafficError::Broken(Broken::Closed(12))), "{error}");
    let error = fails(gone, Direction::Up, patience);
    assert!(matches!(error, TrafficError::Broken(Broken::Closed(_))), "{error}");

    let mute = impostor(|socket| {
        sleep(Duration::from_secs(5));
        drop(socket);
    });
    for direction in [Direction::Down, Direction::Up] {
        let error = fails(mute, direction, patience);
        assert!(matches!(error, TrafficError::Broken(Broken::Stalled(_, _))), "{error}");
    }

    let damaging = impostor(|mut socket| {
        let _ = socket.write_all(&Header { stamp: Instant::ZERO, len: 100 }.emit());
        let _ = socket.write_all(&[0x5a; 88]);
    });
    let error = fails(damaging, Direction::Down, patience);
    assert!(matches!(error, TrafficError::Broken(Broken::Damaged(_))), "{error}");

    let short = impostor(|mut socket| {
        let end = Header { stamp: Instant::ZERO, len: HEADER_LEN as u32 };
        let _ = socket.write_all(&end.emit());
    });
    let error = fails(short, Direction::Down, patience);
    assert!(matches!(error, TrafficError::Incomplete { got: 0, expected: 50_000_000 }), "{error}");

    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(matches!(fails(nobody, Direction::Down, patience), TrafficError::Connect { .. }));
}

#[test]
fn a_server_told_to_end_ends_its_streams() {
    let served = Served::start(8);
    let address = served.address;
    let client = thread::spawn(move || fails(address, Direction::Down, Duration::from_secs(5)));
    // Enough to be under way or not: either way the client hears of it.
    served.ended.store(true, Ordering::Relaxed);
    served.thread.join().unwrap();
    let error = client.join().unwrap();
    assert!(matches!(error, TrafficError::Broken(_) | TrafficError::Connect { .. }), "{error}");
}

#[test]
fn a_congestion_control_that_is_not_there_is_named() {
    let served = Served::start(8);
    let congestion = Some("no-such-one".parse().unwrap());
    let options = Options { congestion, ..options(served.address) };
    let error = run(&options, &transactions(1, 1), || false, |_| {}).unwrap_err().to_string();
    assert!(error.contains("congestion control no-such-one"), "{error}");
}
