//! What hosts do in a night: pages, downloads, uploads, a terminal, and questions by UDP; each request with when and how it ended.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time;

use base::{Duration, Instant};
use field::testbed::namespaces::Namespace;
use gateway::clock::{Clock, sleep};

/// What a host asks for again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Some kilobytes, with pauses as a reader makes them.
    Page,
    /// 3 MB down.
    Download,
    /// 500 kB up.
    Upload,
    /// A line there and back on a connection that stays.
    Terminal,
    /// A datagram there and back, asked again each two seconds.
    Name,
}

/// A request that has ended.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) kind: Kind,
    pub(super) begun: Instant,
    /// Since when its connection may have broken: a terminal's, while nobody typed.
    pub(super) since: Instant,
    pub(super) ended: Instant,
    /// Why it failed.
    pub(super) failed: Option<String>,
}

/// The requests so far, and whether the night is over.
#[derive(Debug)]
pub(super) struct Load {
    clock: Clock,
    over: AtomicBool,
    done: Mutex<Vec<Request>>,
    server: SocketAddr,
}

/// For a connection, and for the next bytes of an answer: far more than an outage.
const PATIENCE: time::Duration = time::Duration::from_secs(90);

impl Load {
    pub(super) const fn new(clock: Clock, server: Ipv4Addr) -> Self {
        let server = SocketAddr::new(std::net::IpAddr::V4(server), 80);
        Self { clock, over: AtomicBool::new(false), done: Mutex::new(Vec::new()), server }
    }

    /// Begins: three readers and one of each other kind.
    pub(super) fn start(&'static self, client: &Namespace) -> Vec<JoinHandle<io::Result<()>>> {
        let kinds =
            [Kind::Page, Kind::Page, Kind::Page, Kind::Download, Kind::Upload, Kind::Terminal, Kind::Name];
        let threads = kinds.into_iter().zip(1..);
        threads.map(|(kind, number)| client.enter(move || self.repeat(kind, number)).unwrap()).collect()
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.done.lock().unwrap().clone()
    }

    fn repeat(&self, kind: Kind, mut random: u64) {
        let (mut terminal, mut typed) = (None, Instant::ZERO);
        while !self.over.load(Ordering::Relaxed) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let draw = random >> 40;
            let begun = self.clock.now();
            let since = if terminal.is_some() { typed } else { begun };
            let result = match kind {
                Kind::Page => self.get(4_000 + draw % 60_000),
                Kind::Download => self.get(3_000_000),
                Kind::Upload => self.put(500_000),
                Kind::Terminal => self.line(&mut terminal, draw),
                Kind::Name => self.ask(draw),
            };
            let failed = result.err().map(|error| error.to_string());
            typed = self.clock.now();
            let request = Request { kind, begun, since, ended: typed, failed };
            self.done.lock().unwrap().push(request);
            let pause = if matches!(kind, Kind::Download | Kind::Upload) { 3000 } else { 300 + draw % 1500 };
            sleep(Duration::from_millis(pause));
        }
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.server, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    fn get(&self, len: u64) -> io::Result<()> {
        let mut stream = self.connect()?;
        writeln!(stream, "get {len}")?;
        check(&mut stream, len)?;
        if stream.read(&mut [0])? == 0 { Ok(()) } else { Err(io::Error::other("more than asked for")) }
    }

    fn put(&self, len: u64) -> io::Result<()> {
        let mut stream = self.connect()?;
        writeln!(stream, "put {len}")?;
        write(&mut stream, len)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        if answer == "right\n" { Ok(()) } else { Err(io::Error::other(format!("answered {answer:?}"))) }
    }

    /// One line, on the connection of the line before if that is still there.
    fn line(&self, terminal: &mut Option<BufReader<TcpStream>>, draw: u64) -> io::Result<()> {
        // What failed once is not used again.
        let mut stream = match terminal.take() {
            Some(stream) => stream,
            None => {
                let mut stream = self.connect()?;
                stream.write_all(b"echo\n")?;
                BufReader::new(stream)
            }
        };
        let (line, mut back) = (format!("{draw}\n"), String::new());
        stream.get_mut().write_all(line.as_bytes())?;
        stream.read_line(&mut back)?;
        if back != line {
            return Err(io::Error::other(format!("{back:?} came back instead of {line:?}")));
        }
        *terminal = Some(stream);
        Ok(())
    }

    fn ask(&self, draw: u64) -> io::Result<()> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_read_timeout(Some(time::Duration::from_secs(2)))?;
        let mut last = io::Error::from(io::ErrorKind::TimedOut);
        for _ in 0..30 {
            let mut answer = [0; 8];
            // A refusal by ICMP is an answer too soon, not the last word.
            let asked =
                socket.send_to(&draw.to_be_bytes(), self.server).and_then(|_| socket.recv(&mut answer));
            match asked {
                Ok(_) if answer == draw.to_be_bytes() => return Ok(()),
                Ok(_) => return Err(io::Error::other("another answer")),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Serves all of it, by TCP and by UDP.
pub(super) fn serve(server: &Namespace, address: Ipv4Addr) {
    let bind = move || (TcpListener::bind((address, 80)).unwrap(), UdpSocket::bind((address, 80)).unwrap());
    let (listener, names) = server.enter(bind).unwrap().join().unwrap().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // What a client takes for failed, the server need not.
            std::thread::spawn(move || answer(&stream));
        }
    });
    std::thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((len, from)) = names.recv_from(&mut question) {
            let _ = names.send_to(&question[..len], from);
        }
    });
}

fn answer(mut stream: &TcpStream) -> io::Result<()> {
    // A terminal may say nothing for a long time; a client that has vanished does not come back.
    stream.set_read_timeout(Some(4 * PATIENCE))?;
    stream.set_write_timeout(Some(4 * PATIENCE))?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let len = |text: &str| text.trim().parse().map_err(io::Error::other);
    match line.split_at_checked(4) {
        Some(("get ", rest)) => write(&mut stream, len(rest)?),
        Some(("put ", rest)) => {
            check(&mut reader, len(rest)?)?;
            stream.write_all(b"right\n")
        }
        _ => {
            line.clear();
            while reader.read_line(&mut line)? > 0 {
                stream.write_all(line.as_bytes())?;
                line.clear();
            }
            Ok(())
        }
    }
}

/// Bytes that say where they belong.
fn content(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn write(stream: &mut impl io::Write, len: u64) -> io::Result<()> {
    let bytes: Vec<u8> = (0..len).map(content).collect();
    stream.write_all(&bytes)
}

fn check(stream: &mut impl Read, len: u64) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    while at < len {
        let part = (len - at).min(buffer.len() as u64) as usize;
        let got = stream.read(&mut buffer[..part])?;
        if got == 0 {
            return Err(io::Error::other(format!("ended after {at} of {len} bytes")));
        }
        if let Some(wrong) = buffer[..got].iter().zip(at..).position(|(byte, at)| *byte != content(at)) {
            return Err(io::Error::other(format!("byte {} is another", at + wrong as u64)));
        }
        at += got as u64;
    }
    Ok(())
}
