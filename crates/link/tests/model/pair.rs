//! Two ends of a COTMLL link over lines that lose and repeat, each session of each end beside its model.
//!
//! Whatever the caller makes of the lines, every frame that leaves is the model's, byte for byte, and of the packets none goes up
//! twice, altered, or out of order where order was asked for. [`Pair::drain`] opens the lines: then all must arrive but
//! what was given up.

use std::collections::VecDeque;

use base::{Instant, Packet};
use longhaul_link::cotmll::{Config, SESSION_LEN, SubProtocol, TRAILER_LEN, Trailer};
use longhaul_link::{Endpoint, LineLimits, Protocol, Treatment, flow};

use super::Model;

/// Time from one frame to the next, in nanoseconds.
pub(crate) const FRAME_TIME: u64 = 1_000_000;

/// Bytes of a packet's mark, which is repeated to its end.
const MARK: usize = 8;

/// What happens to one frame and beside it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    /// It comes twice.
    pub(crate) repeated: bool,
    /// An acknowledgement or message that the session said so many frames ago comes once more, behind this one.
    pub(crate) replayed: Option<usize>,
    /// A frame arrives between this one's start and its trailer's leaving.
    pub(crate) interrupted: bool,
}

/// One end under test.
struct End {
    real: Box<dyn Endpoint>,
    sessions: Vec<Session>,
    offers: u64,
    /// Packets that may wait in front of a session, and those that were dropped there.
    limit: usize,
    dropped: u64,
    coming: VecDeque<Option<Vec<u8>>>,
    /// Frames so far.
    frames: u64,
}

/// One session of an end as modelled.
struct Session {
    model: Model,
    /// Packets offered here that are still to be delivered there.
    owed: VecDeque<Vec<u8>>,
    /// Number of the latest packet of class 010 that was delivered here.
    once_seen: u64,
    /// What was lately said here without data, and how far both ends were.
    said: VecDeque<(Vec<u8>, usize, usize)>,
    /// Packets delivered out of those owed, and those that were passed over.
    delivered: u64,
    missing: u64,
    spoke_at: u64,
}

/// A frame that was started: its session, and its bytes as they are and as they should be.
struct Started {
    session: usize,
    frame: Vec<u8>,
    modelled: Vec<u8>,
}

impl Session {
    fn new(config: Config) -> Self {
        Self {
            model: Model::new(config),
            owed: VecDeque::new(),
            once_seen: 0,
            said: VecDeque::new(),
            delivered: 0,
            missing: 0,
            spoke_at: 0,
        }
    }

    /// Keeps what a frame said beside its data.
    fn keep_said(&mut self, frame: &[u8]) {
        let (trailer, payload) = Trailer::parse(frame).unwrap();
        let message: &[u8] = if trailer.protocol == SubProtocol::Control { payload } else { &[] };
        let bare =
            Trailer { protocol: SubProtocol::Control, first: false, last: false, tx: 0, ack: trailer.ack };
        let (base, next) = self.model.progress();
        self.said.push_back(([message, &bare.emit()].concat(), base, next));
        if self.said.len() > 200 {
            self.said.pop_front();
        }
    }

    /// A packet goes up: the model's, and owed.
    fn receive(&mut self, packet: &[u8], owed: &mut VecDeque<Vec<u8>>, config: &Config) {
        assert_eq!(self.model.delivered.pop_front().as_deref(), Some(packet));
        let at = owed.iter().position(|sent| sent == packet).expect("altered, or delivered twice");
        if config.ordered {
            let may_miss = config.persistence.is_some() || config.attempts.is_some();
            assert!(at == 0 || may_miss, "out of order");
            self.missing += at as u64;
            owed.drain(..=at);
        } else {
            owed.remove(at);
        }
        self.delivered += 1;
    }

    /// Class 010: whole, in order, and not twice.
    fn receive_once(&mut self, body: &[u8]) {
        let mark: [u8; MARK] = body[..MARK].try_into().unwrap();
        assert!(body.iter().eq(mark.iter().cycle().take(body.len())));
        let number = u64::from_be_bytes(mark) & !ONCE;
        assert!(number > self.once_seen);
        self.once_seen = number;
    }
}

impl End {
    fn new(config: Config) -> Self {
        let real = Protocol::CotmllThesis(config).build(&LineLimits::default());
        let sessions = (0..config.sessions.get()).map(|_| Session::new(config)).collect();
        let limit = config.session_queue.get() as usize;
        Self { real, sessions, offers: 0, limit, dropped: 0, coming: VecDeque::new(), frames: 0 }
    }

    fn count(&self, name: &str) -> u64 {
        self.real.counters().iter().find(|(n, _)| *n == name).map_or(0, |(_, count)| *count)
    }

    /// Offers a packet of a flow, if there is room: its class, its number, and these again and again.
    fn offer(&mut self, flow: u8, len: usize, treatment: Treatment) {
        if !self.real.has_room(treatment) {
            return;
        }
        self.offers += 1;
        let once = treatment.is_once();
        let mark = self.offers | if once { ONCE } else { 0 };
        let mut packet = header(flow, self.sessions.len());
        packet.extend(mark.to_be_bytes().into_iter().cycle().take(len.max(MARK)));
        self.real.offer(Instant::ZERO, Packet::from_slice(&packet), treatment).unwrap();
        let session = session_of(flow, self.sessions.len());
        // Those that wait for a session have a frame each at least. To count takes long.
        let may_be_full =
            self.sessions.len() > 1 && (once || self.sessions[session].model.unsent() >= self.limit);
        if may_be_full && self.count("packets-dropped-session") > self.dropped {
            self.dropped += 1;
            return;
        }
        self.sessions[session].model.offer(&packet, once);
        if !once {
            self.sessions[session].owed.push_back(packet);
        }
    }

    /// Starts a frame: as it is, and as it should be.
    fn start(&mut self, now: u64) -> Started {
        let mut frame = Vec::new();
        let info = self.real.poll_frame(Instant::from_nanos(now), &mut frame).unwrap();
        assert_eq!(self.real.poll_timeout(), None);
        let (number, alone) = split(&frame, self.sessions.len());
        self.frames += 1;
        self.sessions[number].spoke_at = self.frames;
        for session in &self.sessions {
            assert!(self.frames - session.spoke_at < 16, "a session is silent");
        }
        // With several, a session may be asked for nothing but its acknowledgement.
        let is_bare = self.sessions.len() > 1 && alone.len() == TRAILER_LEN;
        let model = &mut self.sessions[number].model;
        let (kind, modelled) = if is_bare { model.poll_bare(now) } else { model.poll(now) };
        assert_eq!((info.kind, alone.len()), (kind, modelled.len()));
        Started { session: number, frame, modelled }
    }

    /// Ends a frame that was started.
    fn seal(&mut self, now: u64, started: Started) -> Vec<u8> {
        let Started { session, mut frame, mut modelled } = started;
        self.real.seal_frame(Instant::from_nanos(now), &mut frame);
        let Session { model, .. } = &mut self.sessions[session];
        model.seal(&mut modelled);
        assert_eq!(frame, join(session, &modelled, self.sessions.len()));
        self.sessions[session].keep_said(&modelled);
        frame
    }

    /// Takes what comes next; what goes up must be owed.
    fn receive(&mut self, from: &mut [Session], config: &Config) {
        let Some(frame) = self.coming.pop_front().flatten() else { return };
        let (number, alone) = split(&frame, self.sessions.len());
        let _ = self.real.handle_frame(Instant::ZERO, &frame);
        let header_len = header(0, self.sessions.len()).len();
        let session = &mut self.sessions[number];
        session.model.handle(&alone);
        while let Some(packet) = self.real.poll_packet() {
            if packet[header_len] & 0x80 == 0 {
                session.receive(&packet, &mut from[number].owed, config);
            } else {
                session.receive_once(&packet[header_len..]);
            }
        }
        assert!(session.model.delivered.is_empty());
    }

    /// An acknowledgement or message that a session said so many frames ago, if its numbers still mean what they meant.
    fn said(&self, number: usize, ago: usize, peer: &[Session]) -> Option<Vec<u8>> {
        let Session { model, said, .. } = &self.sessions[number];
        let (said, base, next) = &said[said.len() - 1 - ago % said.len()];
        // Half the sequence space later, an old number is a new one.
        let is_young =
            model.progress().1 - next < 400 && peer[number].model.progress().1.saturating_sub(*base) < 400;
        is_young.then(|| join(number, said, self.sessions.len()))
    }
}

/// Both ends.
pub(crate) struct Pair {
    config: Config,
    /// Frames on each line at once.
    pipe: usize,
    ends: [End; 2],
    now: u64,
    /// A session of which every frame from either end is lost.
    pub(crate) stalled: Option<usize>,
}

impl Pair {
    pub(crate) fn new(config: Config, pipe: usize) -> Self {
        Self { config, pipe, ends: [End::new(config), End::new(config)], now: 0, stalled: None }
    }

    /// Offers a packet of that many bytes, or a few more, of a flow to the end at `side`, if there is room.
    pub(crate) fn offer(&mut self, side: usize, flow: u8, len: usize, treatment: Treatment) {
        self.ends[side].offer(flow, len, treatment);
    }

    /// Lets time pass in which nobody sends.
    pub(crate) const fn pass(&mut self, nanos: u64) {
        self.now += nanos;
    }

    /// Sends a frame from `side`, and lets the one arrive that was sent a pipe's length ago.
    pub(crate) fn transfer(&mut self, side: usize, fate: Fate) {
        self.now += FRAME_TIME / 2;
        let [a, b] = &mut self.ends;
        let (from, to) = if side == 0 { (a, b) } else { (b, a) };
        let started = from.start(self.now);
        let session = started.session;
        if fate.interrupted {
            from.receive(&mut to.sessions, &self.config);
        }
        let frame = from.seal(self.now, started);
        let lost = fate.lost || self.stalled == Some(session);
        if fate.repeated && !lost {
            to.coming.push_back(Some(frame.clone()));
        }
        to.coming.push_back((!lost).then_some(frame));
        if let Some(ago) = fate.replayed
            && let Some(said) = from.said(session, ago, &to.sessions)
        {
            to.coming.push_back(Some(said));
        }
        while to.coming.len() > self.pipe {
            to.receive(&mut from.sessions, &self.config);
        }
    }

    /// Opens the lines: within a few windows and round trips all that is owed must arrive, and the sender must know.
    pub(crate) fn drain(&mut self) {
        self.stalled = None;
        let sessions = || self.ends.iter().flat_map(|end| &end.sessions);
        let unsent: usize = sessions().map(|session| session.model.unsent()).sum();
        // In the narrowest window each new frame waits for the one before it to be acknowledged.
        let enough = 4 * self.ends[0].sessions.len() * (512 + (unsent + 1) * (self.pipe + 2));
        let rounds = (0..enough).take_while(|_| {
            self.exchange();
            !self.ends.iter().flat_map(|end| &end.sessions).all(|session| session.model.is_settled())
        });
        assert!(rounds.count() < enough, "the receiver was not told");
        // What is on the line arrives.
        (0..=self.pipe).for_each(|_| self.exchange());
        let [a, b] = &self.ends;
        for (sender, receiver) in [(a, b), (b, a)] {
            let missing: u64 = receiver.sessions.iter().map(|session| session.missing).sum();
            let owed: usize = sender.sessions.iter().map(|session| session.owed.len()).sum();
            assert!(missing + owed as u64 <= sender.count("packets-given-up"), "something was lost for ever");
        }
    }

    fn exchange(&mut self) {
        self.transfer(0, Fate::default());
        self.transfer(1, Fate::default());
    }

    /// Packets of class 001 that each session of the end at `side` delivered.
    pub(crate) fn delivered(&self, side: usize) -> Vec<u64> {
        self.ends[side].sessions.iter().map(|session| session.delivered).collect()
    }

    /// What each end counted.
    pub(crate) fn counts(&self, name: &str) -> [u64; 2] {
        [self.ends[0].count(name), self.ends[1].count(name)]
    }
}

/// Set in the mark of packets of class 010.
const ONCE: u64 = 1 << 63;

/// The session that a flow goes by.
pub(crate) fn session_of(flow: u8, sessions: usize) -> usize {
    (flow::hash(&header(flow, sessions)) % sessions as u64) as usize
}

/// What stands in front of a packet's mark: as much of IPv4 and UDP as tells its flow. One session needs none.
fn header(flow: u8, sessions: usize) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, flow, 0, 53];
    header.truncate(if sessions > 1 { header.len() } else { 0 });
    header
}

/// A frame's session, and the frame as it would be in the only one.
fn split(frame: &[u8], sessions: usize) -> (usize, Vec<u8>) {
    if sessions == 1 {
        return (0, frame.to_vec());
    }
    let (body, trailer) = frame.split_at(frame.len() - TRAILER_LEN);
    let (payload, session) = body.split_at(body.len() - SESSION_LEN);
    (session[0].into(), [payload, trailer].concat())
}

/// The other way round.
fn join(session: usize, alone: &[u8], sessions: usize) -> Vec<u8> {
    let (payload, trailer) = alone.split_at(alone.len() - TRAILER_LEN);
    let number: &[u8] = if sessions > 1 { &[session as u8] } else { &[] };
    [payload, number, trailer].concat()
}
