//! Two ends of a COTMLL link over lines that lose and repeat, each end beside its model.
//!
//! Whatever the caller makes of the lines, every frame that leaves is the model's, byte for byte, and of the packets none goes up
//! twice, altered, or out of order where order was asked for. [`Pair::drain`] opens the lines: then all must arrive but
//! what was given up.

use std::collections::VecDeque;

use base::{Instant, Packet};
use longhaul_link::cotmll::{Config, Cotmll, SubProtocol, Trailer};
use longhaul_link::{Class, Endpoint};

use super::Model;

/// Time from one frame to the next, in nanoseconds.
pub(crate) const FRAME_TIME: u64 = 1_000_000;

/// Bytes of the shortest packet: its mark.
pub(crate) const SHORTEST: usize = 8;

/// What happens to one frame and beside it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    /// It comes twice.
    pub(crate) repeated: bool,
    /// An acknowledgement or message that was said so many frames ago comes once more, behind this one.
    pub(crate) replayed: Option<usize>,
    /// A frame arrives between this one's start and its trailer's leaving.
    pub(crate) interrupted: bool,
}

/// One end under test, and the same end as modelled.
struct End {
    real: Cotmll,
    model: Model,
    /// Packets offered here that are still to be delivered there.
    owed: VecDeque<Vec<u8>>,
    offers: u64,
    /// Number of the latest packet of class 010 that was delivered here.
    once_seen: u64,
    coming: VecDeque<Option<Vec<u8>>>,
    /// What was lately said here without data, and how far both ends were.
    said: VecDeque<(Vec<u8>, usize, usize)>,
    /// Packets delivered out of those owed, and those that were passed over.
    delivered: u64,
    missing: u64,
}

impl End {
    fn new(config: Config) -> Self {
        Self {
            real: Cotmll::new(config),
            model: Model::new(config),
            owed: VecDeque::new(),
            offers: 0,
            once_seen: 0,
            coming: VecDeque::new(),
            said: VecDeque::new(),
            delivered: 0,
            missing: 0,
        }
    }

    /// Offers a packet, if there is room: its class, its number, and these again and again.
    fn offer(&mut self, len: usize, class: Class) {
        if !self.real.has_room(class) {
            return;
        }
        self.offers += 1;
        let once = class == Class::Unreliable;
        let mark = self.offers | u64::from(once) << 63;
        let packet: Vec<u8> = mark.to_be_bytes().into_iter().cycle().take(len.max(SHORTEST)).collect();
        self.model.offer(&packet, once);
        self.real.offer(Instant::ZERO, Packet::from_slice(&packet), class).unwrap();
        if !once {
            self.owed.push_back(packet);
        }
    }

    /// Starts a frame: as it is, and as it should be.
    fn start(&mut self, now: u64) -> [Vec<u8>; 2] {
        let mut frame = Vec::new();
        let info = self.real.poll_frame(Instant::from_nanos(now), usize::MAX, &mut frame).unwrap();
        let (kind, modelled) = self.model.poll(now);
        assert_eq!((info.kind, frame.len()), (kind, modelled.len()));
        assert_eq!(self.real.poll_timeout(), None);
        [frame, modelled]
    }

    /// Ends a frame that was started.
    fn seal(&mut self, now: u64, [mut frame, mut modelled]: [Vec<u8>; 2]) -> Vec<u8> {
        self.real.seal_frame(Instant::from_nanos(now), &mut frame);
        self.model.seal(&mut modelled);
        assert_eq!(frame, modelled);
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

    /// Takes what comes next; what goes up must be owed.
    fn receive(&mut self, owed: &mut VecDeque<Vec<u8>>, config: &Config) {
        let Some(frame) = self.coming.pop_front().flatten() else { return };
        let _ = self.real.handle_frame(Instant::ZERO, &frame);
        self.model.handle(&frame);
        while let Some(packet) = self.real.poll_packet() {
            if packet[0] & 0x80 != 0 {
                self.receive_once(&packet);
                continue;
            }
            assert_eq!(self.model.delivered.pop_front().as_deref(), Some(&*packet));
            let at = owed.iter().position(|sent| **sent == *packet).expect("altered, or delivered twice");
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
        assert!(self.model.delivered.is_empty());
    }

    /// Class 010: whole, in order, and not twice.
    fn receive_once(&mut self, packet: &[u8]) {
        let mark: [u8; 8] = packet[..8].try_into().unwrap();
        assert!(packet.iter().eq(mark.iter().cycle().take(packet.len())));
        let number = u64::from_be_bytes(mark) & !(1 << 63);
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
    pub(crate) fn offer(&mut self, side: usize, len: usize, class: Class) {
        self.ends[side].offer(len, class);
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
        from.keep_said(&frame);
        if fate.repeated && !fate.lost {
            to.coming.push_back(Some(frame.clone()));
        }
        to.coming.push_back((!fate.lost).then_some(frame));
        if let Some(ago) = fate.replayed {
            let (said, base, next) = &from.said[from.said.len() - 1 - ago % from.said.len()];
            // Half the sequence space later, an old number is a new one.
            if from.model.progress().1 - next < 400 && to.model.progress().1.saturating_sub(*base) < 400 {
                to.coming.push_back(Some(said.clone()));
            }
        }
        while to.coming.len() > self.pipe {
            to.receive(&mut from.owed, &self.config);
        }
    }

    /// Opens the lines: within a few windows and round trips all that is owed must arrive, and the sender must know.
    pub(crate) fn drain(&mut self) {
        let unsent = self.ends.iter().map(|end| end.model.unsent()).max().unwrap_or(0);
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
            let missing = receiver.missing + sender.owed.len() as u64;
            assert!(missing <= count(&sender.real, "packets-given-up"), "something was lost for ever");
            assert_eq!(sender.real.in_flight(), 0);
        }
    }

    fn exchange(&mut self) {
        self.transfer(0, Fate::default());
        self.transfer(1, Fate::default());
    }

    /// Packets of class 001 that each end delivered.
    pub(crate) fn delivered(&self) -> [u64; 2] {
        [self.ends[0].delivered, self.ends[1].delivered]
    }

    /// What each end counted.
    pub(crate) fn counts(&self, name: &str) -> [u64; 2] {
        [count(&self.ends[0].real, name), count(&self.ends[1].real, name)]
    }
}

fn count(real: &Cotmll, name: &str) -> u64 {
    real.counters().iter().find(|(n, _)| *n == name).unwrap().1
}
