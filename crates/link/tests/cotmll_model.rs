//! COTMLL against a model of it, frame by frame and byte by byte, over lines that lose and repeat.
//!
//! Each run ends with an open line, on which everything must arrive that was not given up.

use base::{Duration, Rng};
use longhaul_link::Treatment;
use longhaul_link::cotmll::{Acknowledge, Config, FlagAgainst, GapOpensWith, ToldBlock};

use crate::model::pair::{FRAME_TIME, Fate, Pair};

/// Bytes of a packet in a full frame: small, so that packets of little more take several.
const PAYLOAD: u32 = 40;

#[derive(Clone, Copy)]
struct Setting {
    window: u32,
    ordered: bool,
    /// Probability of each frame's loss.
    loss: f64,
    /// Probabilities, at each frame, of entering and of leaving a blockage of both directions.
    blockage: (f64, f64),
    /// Probability of each frame's coming twice.
    repeat: f64,
    /// Frames on the line at once.
    pipe: usize,
    /// Packets of class 010 too.
    once: bool,
    /// Probability, at each frame, that an earlier acknowledgement or message comes once more.
    replay: f64,
    /// Frames' times after which a packet is given up.
    persistence: Option<u64>,
    attempts: Option<u32>,
    block: ToldBlock,
    gap_opens_with: GapOpensWith,
    /// Probability, at each frame, that one arrives between its start and its trailer.
    interrupted: f64,
    flag_against: FlagAgainst,
    acknowledge: Acknowledge,
}

const CLEAN: Setting = Setting {
    window: 512,
    ordered: true,
    loss: 0.0,
    blockage: (0.0, 1.0),
    repeat: 0.0,
    pipe: 10,
    once: false,
    replay: 0.0,
    persistence: None,
    attempts: None,
    block: ToldBlock::First,
    gap_opens_with: GapOpensWith::Block,
    interrupted: 0.0,
    flag_against: FlagAgainst::Latest,
    acknowledge: Acknowledge::Trailer,
};

impl Setting {
    fn config(&self) -> Config {
        let persistence = self.persistence.map(|frames| Duration::from_nanos(frames * FRAME_TIME));
        Config {
            window: self.window.try_into().unwrap(),
            ordered: self.ordered,
            frame_payload: PAYLOAD.try_into().unwrap(),
            persistence: persistence.map(|time| time.try_into().unwrap()),
            attempts: self.attempts.map(|attempts| attempts.try_into().unwrap()),
            flag_against: self.flag_against,
            acknowledge: self.acknowledge,
            block: self.block,
            gap_opens_with: self.gap_opens_with,
        }
    }
}

struct Run {
    setting: Setting,
    rng: Rng,
    pair: Pair,
    blocked: bool,
}

impl Run {
    fn new(setting: Setting, seed: u64) -> Self {
        let pair = Pair::new(setting.config(), setting.pipe);
        Self { setting, rng: Rng::named(seed, "model"), pair, blocked: false }
    }

    fn steps(&mut self, count: usize, load: f64) {
        for _ in 0..count {
            let side = self.rng.below(2) as usize;
            if self.rng.chance(0.001) {
                self.pair.pass(self.rng.below(100) * FRAME_TIME);
            }
            while self.rng.chance(load) {
                let len = 8 + self.rng.below(150) as usize;
                let once = self.setting.once && self.rng.chance(0.3);
                self.pair.offer(side, len, if once { Treatment::Once } else { Treatment::Reliable });
            }
            let fate = self.fate();
            self.pair.transfer(side, fate);
        }
    }

    fn fate(&mut self) -> Fate {
        let Setting { blockage: (enter, leave), loss, repeat, replay, interrupted, .. } = self.setting;
        self.blocked = if self.blocked { !self.rng.chance(leave) } else { self.rng.chance(enter) };
        Fate {
            lost: self.blocked || self.rng.chance(loss),
            repeated: self.rng.chance(repeat),
            replayed: self.rng.chance(replay).then(|| self.rng.below(200) as usize),
            interrupted: self.rng.chance(interrupted),
        }
    }
}

fn check(setting: Setting, seeds: u64, steps: usize) {
    for seed in 0..seeds {
        let mut run = Run::new(setting, seed);
        for load in [0.9, 0.2, 0.5] {
            run.steps(steps / 3, load);
        }
        run.pair.drain();
        assert!(run.pair.delivered().iter().all(|packets| *packets > 0));
    }
}

#[test]
fn a_clean_line() {
    check(CLEAN, 2, 30_000);
    check(Setting { pipe: 300, ..CLEAN }, 2, 30_000);
}

/// On a line that keeps order, nothing is taken for lost that is not, however much is sent twice for want of news.
#[test]
fn without_losses_nothing_is_flagged() {
    for window in [3, 512] {
        let mut run = Run::new(Setting { window, pipe: 100, ..CLEAN }, 1);
        run.steps(20_000, 0.5);
        assert_eq!(
            (run.pair.counts("frames-flagged"), run.pair.counts("frames-retransmitted")),
            ([0; 2], [0; 2])
        );
        assert!(run.pair.counts("frames-filler").iter().all(|fillers| *fillers > 1000));
    }
}

#[test]
fn lost_frames() {
    for (loss, pipe) in [(0.05, 3), (0.2, 40), (0.5, 20), (0.02, 400)] {
        check(Setting { loss, pipe, ..CLEAN }, 4, 10_000);
        check(Setting { loss, pipe, ordered: false, ..CLEAN }, 4, 10_000);
    }
}

#[test]
fn blockages() {
    for (blockage, pipe) in [((0.01, 0.02), 20), ((0.001, 0.001), 60), ((0.002, 0.0005), 10)] {
        check(Setting { blockage, pipe, ..CLEAN }, 4, 20_000);
        check(Setting { blockage, pipe, ordered: false, once: true, ..CLEAN }, 4, 20_000);
    }
}

#[test]
fn repeated_frames() {
    check(Setting { repeat: 0.3, loss: 0.1, once: true, ..CLEAN }, 5, 10_000);
    check(Setting { repeat: 0.3, loss: 0.1, ordered: false, once: true, ..CLEAN }, 5, 10_000);
}

#[test]
fn small_windows() {
    for window in [1, 2, 7, 64, 511] {
        let setting = Setting { window, loss: 0.1, blockage: (0.005, 0.01), once: true, ..CLEAN };
        check(setting, 3, 9_000);
        check(Setting { ordered: false, ..setting }, 3, 9_000);
    }
}

/// Whatever block is told, everything arrives; on a line without losses still nothing is flagged.
#[test]
fn the_latest_block() {
    let latest = Setting { block: ToldBlock::Latest, ..CLEAN };
    for (loss, blockage, pipe) in [(0.1, (0.0, 1.0), 20), (0.02, (0.005, 0.01), 60), (0.5, (0.0, 1.0), 3)] {
        for window in [2, 60, 512] {
            let setting = Setting { window, loss, blockage, pipe, once: true, repeat: 0.1, ..latest };
            check(setting, 3, 9_000);
            check(Setting { ordered: false, replay: 0.2, ..setting }, 3, 9_000);
            check(Setting { attempts: Some(4), persistence: Some(300), ..setting }, 3, 9_000);
        }
    }
    let mut run = Run::new(Setting { pipe: 100, ..latest }, 1);
    run.steps(20_000, 0.5);
    assert_eq!(run.pair.counts("frames-flagged"), [0; 2]);
}

/// A gap may open with the cumulative acknowledgement.
#[test]
fn the_cumulative_first() {
    for block in [ToldBlock::First, ToldBlock::Latest] {
        let first = Setting { block, gap_opens_with: GapOpensWith::Cumulative, ..CLEAN };
        for (loss, blockage, pipe) in [(0.1, (0.0, 1.0), 20), (0.02, (0.005, 0.01), 60), (0.5, (0.0, 1.0), 3)]
        {
            for window in [2, 60, 512] {
                let setting = Setting { window, loss, blockage, pipe, interrupted: 0.2, ..first };
                check(setting, 3, 9_000);
                check(Setting { ordered: false, replay: 0.2, once: true, repeat: 0.1, ..setting }, 3, 9_000);
                check(Setting { attempts: Some(4), persistence: Some(300), ..setting }, 3, 9_000);
            }
        }
    }
}

/// Old acknowledgements and messages say nothing wrong, as long as their numbers still mean what they meant.
#[test]
fn what_was_said_may_be_said_again() {
    for window in [5, 300, 512] {
        let setting = Setting { window, replay: 0.3, repeat: 0.2, loss: 0.1, pipe: 30, once: true, ..CLEAN };
        check(setting, 3, 10_000);
        check(Setting { ordered: false, ..setting }, 3, 10_000);
        check(Setting { attempts: Some(4), persistence: Some(200), ..setting }, 3, 10_000);
    }
}

/// What is missing was given up and counted, and the line goes on.
#[test]
fn limited_persistence() {
    for (persistence, attempts) in [(Some(50), None), (Some(400), None), (None, Some(1)), (None, Some(5))] {
        for (loss, blockage, pipe) in
            [(0.2, (0.0, 1.0), 10), (0.0, (0.005, 0.01), 30), (0.3, (0.001, 0.003), 2)]
        {
            for window in [1, 9, 512] {
                let setting = Setting { window, loss, blockage, pipe, persistence, attempts, ..CLEAN };
                check(setting, 2, 6_000);
                check(Setting { ordered: false, once: true, repeat: 0.1, ..setting }, 2, 6_000);
            }
        }
    }
}

/// Between a frame's start and its trailer's leaving the peer may be heard; and what is for comparison keeps the rules.
#[test]
fn trailers_tell_what_came_since_the_frame_began() {
    for acknowledge in [Acknowledge::Trailer, Acknowledge::Start] {
        for flag_against in [FlagAgainst::Latest, FlagAgainst::First] {
            let (interrupted, loss, blockage) = (0.4, 0.1, (0.002, 0.01));
            let setting = Setting { interrupted, loss, blockage, acknowledge, flag_against, ..CLEAN };
            check(Setting { once: true, ..setting }, 3, 9_000);
            check(Setting { window: 20, persistence: Some(100), ordered: false, ..setting }, 3, 9_000);
        }
    }
}

/// Frames sent by either end of a run that nothing is lost in but by choice.
#[test]
fn a_million_steps_go_by_the_rules() {
    let mut steps = 0;
    for (seed, (window, loss)) in [(512, 0.01), (512, 0.15), (64, 0.05), (300, 0.3)].into_iter().enumerate() {
        let setting = Setting { window, loss, blockage: (0.0005, 0.01), pipe: 25, repeat: 0.01, ..CLEAN };
        for round in 0..13 {
            let mut run = Run::new(setting, 1000 + 100 * seed as u64 + round);
            for load in [0.7, 0.05, 0.3] {
                run.steps(6_500, load);
            }
            steps += 3 * 6_500;
            run.pair.drain();
        }
    }
    assert!(steps >= 1_000_000, "{steps}");
}
