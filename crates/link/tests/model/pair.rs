//! Two ends of a COTMLL link over lines that lose and repeat, each beside its model.
//!
//! Whatever the caller makes of the lines, every frame that leaves is the model's, byte for byte, and of the packets none goes up
//! twice, altered, or out of order where order was asked for. [`Pair::drain`] opens the lines: then all must arrive but
//! what was given up.

use std::collections::VecDeque;

use base::{Instant, Packet};
use longhaul_link::cotmll::{Config, SubProtocol, Trailer};
use longhaul_link::{Endpoint, LineLimits, Protocol, Treatment};

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
    /// An acknowledgement or message that its sender said so many frames ago comes once more, behind this one.
    pub(crate) replayed: Option<usize>,
    /// A frame arrives between this one's start and its trailer's leaving.
    pub(crate) interrupted: bool,
}

/// One end under test, and its model.
struct End {
    real: Box<dyn Endpoint>,
    model: Model,
    offers: u64,
    /// Packets offered here that are still to be delivered there.
    owed: VecDeque<Vec<u8>>,
    /// Number of the latest packet of class 010 that was delivered here.
    once_seen: u64,
    /// What was lately said here without data, and how far both ends were.
    said: VecDeque<(Vec<u8>, usize, usize)>,
    /// Packets delivered out of those owed, and those that were passed over.
    delivered: u64,
    missing: u64,
    coming: VecDeque<Option<Vec<u8>>>,
}

/// A frame that was started: its bytes as they are and as they should be.
struct Started {
    frame: Vec<u8>,
    modelled: Vec<u8>,
}

impl End {
    fn new(config: Config) -> Self {
        Self {
            real: Protocol::CotmllThesis(config).build(&LineLimits::default()),
            model: Model::new(config),
            offers: 0,
            owed: VecDeque::new(),
            once_seen: 0,
            said: VecDeque::new(),
            delivered: 0,
            missing: 0,
            coming: VecDeque::new(),
        }
    }

    fn count(&self, name: &str) -> u64 {
        self.real.counters().iter().find(|(n, _)| *n == name).map_or(0, |(_, count)| *count)
    }

    /// Offers a packet, if there is room: its class, its number, and these again and again.
    fn offer(&mut self, len: usize, treatment: Treatment) {
        if !self.real.has_room(treatment) {
            return;
        }
        self.offers += 1;
        let once = treatment.is_once();
        let mark = self.offers | if once { ONCE } else { 0 };
        let packet: Vec<u8> = mark.to_be_bytes().into_iter().cycle().take(len.max(MARK)).collect();
        self.real.offer(Instant::ZERO, Packet::from_slice(&packet), treatment).unwrap();
        self.model.offer(&packet, once);
        if !once {
            self.owed.push_back(packet);
        }
    }

    /// Starts a frame: as it is, and as it should be.
    fn start(&mut self, now: u64) -> Started {
        let mut frame = Vec::new();
        let info = self.real.poll_frame(Instant::from_nanos(now), &mut frame).unwrap();
        assert_eq!(self.real.poll_timeout(), None);
        let (kind, modelled) = self.model.poll(now);
        assert_eq!((info.kind, frame.len()), (kind, modelled.len()));
        Started { frame, modelled }
    }

    /// Ends a frame that was started.
    fn seal(&mut self, now: u64, started: Started) -> Vec<u8> {
        let Started { mut frame, mut modelled } = started;
        self.real.seal_frame(Instant::from_nanos(now), &mut frame);
        self.model.seal(&mut modelled);
        assert_eq!(frame, modelled);
        self.keep_said(&frame);
        frame
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

    /// An acknowledgement or message that was said here so many frames ago, if its numbers still mean what they meant.
    fn said(&self, ago: usize, peer: &Model) -> Option<Vec<u8>> {
        let (said, base, next) = &self.said[self.said.len() - 1 - ago % self.said.len()];
        // Half the sequence space later, an old number is a new one.
        let is_young = self.model.progress().1 - next < 400 && peer.progress().1.saturating_sub(*base) < 400;
        is_young.then(|| said.clone())
    }

    /// Takes what comes next; what goes up must be owed.
    fn receive(&mut self, owed: &mut VecDeque<Vec<u8>>, config: &Config) {
        let Some(frame) = self.coming.pop_front().flatten() else { return };
        let _ = self.real.handle_frame(Instant::ZERO, &frame);
        self.model.handle(&frame);
        while let Some(packet) = self.real.poll_packet() {
            if packet[0] & 0x80 == 0 {
                self.take(&packet, owed, config);
            } else {
                self.take_once(&packet);
            }
        }
        assert!(self.model.delivered.is_empty());
    }

    /// A packet goes up: the model's, and owed.
    fn take(&mut self, packet: &[u8], owed: &mut VecDeque<Vec<u8>>, config: &Config) {
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
    fn take_once(&mut self, packet: &[u8]) {
        let mark: [u8; MARK] = packet[..MARK].try_into().unwrap();
        assert!(packet.iter().eq(mark.iter().cycle().take(packet.len())));
        let number = u64::from_be_bytes(mark) & !ONCE;
        assert!(number > self.once_seen);
        self.once_seen = number;
    }
}

/// Both ends.
pub(crate) struct Pair {
    config: Config,
    /// Frames on each line at once.
    pipe: usize,
    ends: [End; 2],
    now: u64,
}

impl Pair {
    pub(crate) fn new(config: Config, pipe: usize) -> Self {
        Self { config, pipe, ends: [End::new(config), End::new(config)], now: 0 }
    }

    /// Offers a packet of that many bytes, or a few more, to the end at `side`, if there is room.
    pub(crate) fn offer(&mut self, side: usize, len: usize, treatment: Treatment) {
        self.ends[side].offer(len, treatment);
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
        if fate.interrupted {
            from.receive(&mut to.owed, &self.config);
        }
        let frame = from.seal(self.now, started);
        if fate.repeated && !fate.lost {
            to.coming.push_back(Some(frame.clone()));
        }
        to.coming.push_back((!fate.lost).then_some(frame));
        if let Some(ago) = fate.replayed
            && let Some(said) = from.said(ago, &to.model)
        {
            to.coming.push_back(Some(said));
        }
        while to.coming.len() > self.pipe {
            to.receive(&mut from.owed, &self.config);
        }
    }

    /// Opens the lines: within a few windows and round trips all that is owed must arrive, and the sender must know.
    pub(crate) fn drain(&mut self) {
        let unsent: usize = self.ends.iter().map(|end| end.model.unsent()).sum();
        // In the narrowest window each new frame waits for the one before it to be acknowledged.
        let enough = 4 * (512 + (unsent + 1) * (self.pipe + 2));
        let rounds = (0..enough).take_while(|_| {
            self.exchange();
            !self.ends.iter().all(|end| end.model.is_settled())
        });
        assert!(rounds.count() < enough, "the receiver was not told");
        // What is on the line arrives.
        (0..=self.pipe).for_each(|_| self.exchange());
        let [a, b] = &self.ends;
        for (sender, receiver) in [(a, b), (b, a)] {
            let lost = receiver.missing + sender.owed.len() as u64;
            assert!(lost <= sender.count("packets-given-up"), "something was lost for ever");
        }
    }

    fn exchange(&mut self) {
        self.transfer(0, Fate::default());
        self.transfer(1, Fate::default());
    }

    /// Packets of class 001 that each end delivered.
    pub(crate) fn delivered(&self) -> [u64; 2] {
        self.ends.each_ref().map(|end| end.delivered)
    }

    /// What each end counted.
    pub(crate) fn counts(&self, name: &str) -> [u64; 2] {
        self.ends.each_ref().map(|end| end.count(name))
    }
}

/// Set in the mark of packets of class 010.
const ONCE: u64 = 1 << 63;
