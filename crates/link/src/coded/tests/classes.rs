//! What is interactive waits for no download, and what is sent once is sent once.

use base::Rng;

use crate::endpoint::FrameKind;

use super::*;

/// Packets of each treatment that wait outside.
type Waiting = [VecDeque<Packet>; 3];

/// Two ends with a saturating flow of class "reliable", and a packet of another treatment every `every` steps. What came out of the second end:
/// packets with how many steps each took.
struct Beside {
    pair: Pair<Coded>,
    rng: Rng,
    loss: f64,
    waiting: Waiting,
    sent: Vec<(u32, u32)>,
    arrived: Vec<(u8, u32, u32)>,
}

/// Flow numbers by treatment: once, interactive, reliable.
const FLOWS: [u8; 3] = [1, 2, 3];
const DELAY: u32 = 16;

/// Where a treatment stands among all.
fn row(treatment: Treatment) -> usize {
    Treatment::ALL.iter().position(|it| *it == treatment).unwrap()
}

impl Beside {
    fn new(loss: f64) -> Self {
        let pair = Pair::new(|| Coded::new(Config::default(), &LINE), DELAY as usize);
        let (sent, arrived) = (Vec::new(), Vec::new());
        Self { pair, rng: Rng::named(3, "losses"), loss, waiting: Waiting::default(), sent, arrived }
    }

    fn offer(&mut self, treatment: Treatment, number: u32, len: usize) {
        let place = row(treatment);
        self.waiting[place].push_back(packet(FLOWS[place], number, len));
    }

    fn step(&mut self, step: u32) {
        for (treatment, waiting) in Treatment::ALL.into_iter().zip(&mut self.waiting) {
            let end = &mut self.pair.ends[0];
            while end.has_room(treatment)
                && let Some(packet) = waiting.pop_front()
            {
                end.offer(self.pair.now, packet, treatment).unwrap();
            }
            end.set_backlog(treatment, waiting.iter().map(|it| it.len() as u64).sum());
        }
        let Self { pair, rng, loss, arrived, .. } = self;
        let mut losing = |_: usize, line: &mut VecDeque<Option<Vec<u8>>>| {
            if rng.unit() < *loss {
                line.pop_back();
                line.push_back(None);
            }
        };
        for packet in &pair.step(&mut losing)[1] {
            let (flow, number) = flow_and_number(packet);
            arrived.push((flow, number, step));
        }
    }

    /// A download, and a packet that is treated otherwise every tenth step.
    fn run(mut self, treatment: Treatment, steps: u32) -> Self {
        for step in 0..steps {
            if self.waiting[2].len() < 50 {
                (0..50).for_each(|number| self.offer(Treatment::Reliable, number, 60));
            }
            if step % 10 == 0 {
                let number = self.sent.len() as u32;
                self.sent.push((number, step));
                self.offer(treatment, number, 40);
            }
            self.step(step);
        }
        self
    }

    /// The steps that packets of a treatment took beyond the line's delay, sorted.
    fn late(&self, treatment: Treatment) -> Vec<u32> {
        let flow = FLOWS[row(treatment)];
        let of = self.arrived.iter().filter(|(it, ..)| *it == flow);
        let mut late: Vec<u32> =
            of.map(|(_, number, step)| step - self.sent[*number as usize].1 - DELAY).collect();
        late.sort_unstable();
        late
    }

    fn count(&self, treatment: Treatment, name: &str) -> u64 {
        let counters = self.pair.ends[0].class(treatment).counters();
        counters.iter().find(|(counter, _)| *counter == name).unwrap().1
    }
}

/// Goal: beside a download that fills the line, one packet in ten lost, 97 of 100 interactive packets come without waiting for a round trip of
/// 32 steps, and all of them come. Without a class each loss would cost one. The repairs take no more than a quarter of the line, a tenth being packets.
#[test]
fn what_is_interactive_waits_for_no_round_trip() {
    let beside = Beside::new(0.1).run(Treatment::Interactive, 20_000);
    let late = beside.late(Treatment::Interactive);
    assert!(late.len() + 5 > beside.sent.len(), "{} of {}", late.len(), beside.sent.len());
    assert!(late[late.len() * 97 / 100] < 12, "{:?}", &late[late.len() * 9 / 10..]);
    let download = beside.arrived.iter().filter(|(flow, ..)| *flow == FLOWS[2]).count();
    assert!(download > 20_000 * 60 / 100, "{download}");
}

/// Goal: of what is sent once 97 of 100 come, soon, although each frame with it is sent once and one in ten is lost.
#[test]
fn what_is_sent_once_has_repairs() {
    let beside = Beside::new(0.1).run(Treatment::Once, 20_000);
    let late = beside.late(Treatment::Once);
    assert!(late.len() * 100 > beside.sent.len() * 97, "{} of {}", late.len(), beside.sent.len());
    assert!(late[late.len() * 95 / 100] < 12, "{:?}", &late[late.len() * 9 / 10..]);
    for name in ["frames-retransmitted", "frames-filler"] {
        assert_eq!(beside.count(Treatment::Once, name), 0, "{name}");
    }
    assert_eq!(beside.count(Treatment::Once, "frames-new"), beside.sent.len() as u64);
    // What is given up does not fill the window.
    assert!(beside.pair.ends[0].class(Treatment::Once).core.sender.in_flight() < 20);
}

/// Goal: nothing is lost, so nothing but a byte of each frame is paid for.
#[test]
fn a_clean_line_has_no_repairs() {
    let beside = Beside::new(0.0).run(Treatment::Once, 2000);
    for treatment in Treatment::ALL {
        assert_eq!(beside.count(treatment, "frames-repair"), 0, "{treatment:?}");
    }
    assert!(beside.late(Treatment::Once).iter().all(|late| *late <= 3));
}

/// Goal: a class that would fill the line leaves half of it to those behind it.
#[test]
fn no_class_takes_more_than_half() {
    for treatment in [Treatment::Once, Treatment::Interactive] {
        let mut beside = Beside::new(0.0);
        for step in 0..4000 {
            for treatment in [treatment, Treatment::Reliable] {
                if beside.waiting[row(treatment)].len() < 10 {
                    (0..10).for_each(|number| beside.offer(treatment, number, 60));
                }
            }
            beside.step(step);
        }
        let count = |treatment| {
            let flow = FLOWS[row(treatment)];
            beside.arrived.iter().filter(|(it, ..)| *it == flow).count()
        };
        let counts = [count(treatment), count(Treatment::Reliable)];
        assert!(counts.iter().all(|count| count.abs_diff(1990) < 100), "{counts:?}");
    }
}

/// Goal: a flow that sends too little to know hears of the losses that others suffer.
#[test]
fn classes_know_of_losses_from_each_other() {
    let mut beside = Beside::new(0.2);
    for step in 0..2000 {
        beside.offer(Treatment::Reliable, step, 60);
        beside.step(step);
    }
    let loss = |treatment| beside.pair.ends[0].class(treatment).loss().0;
    assert!(loss(Treatment::Reliable) > 30 && loss(Treatment::Interactive) == loss(Treatment::Reliable));
}

/// Goal: what comes of another class while packets leave is told in a fiftieth of the line, and at once where none leave.
#[test]
fn frames_that_only_report_leave_the_line_to_packets() {
    let mut pair = Pair::new(|| Coded::new(Config::default(), &LINE), DELAY as usize);
    let mut downloaded = 0;
    for step in 0..1800_u32 {
        if step < 900 && pair.ends[0].has_room(Treatment::Reliable) {
            pair.ends[0].offer(pair.now, packet(1, step, 60), Treatment::Reliable).unwrap();
        }
        if step % 3 == 0 {
            pair.ends[1].offer(pair.now, packet(2, step, 40), Treatment::Interactive).unwrap();
        }
        downloaded += pair.step(&mut intact)[1].len();
        let reports = pair.count(0, "frames-control");
        match step {
            899 => assert!((95..=100).contains(&reports), "one in nine steps, of 300 packets: {reports}"),
            1799 => assert!((240..=260).contains(&reports), "one for two packets: {reports}"),
            _ => {}
        }
    }
    assert!((790..810).contains(&downloaded), "{downloaded}");
}

#[test]
fn frames_of_no_class_are_refused() {
    let mut end = Coded::new(Config::default(), &LINE);
    assert_eq!(end.handle_frame(Instant::ZERO, &[]), Err(Discard::Truncated(0)));
    let mut frame = Vec::new();
    Coded::new(Config::default(), &LINE).poll_frame(Instant::ZERO, &mut frame);
    *frame.last_mut().unwrap() = 5;
    assert_eq!(end.handle_frame(Instant::ZERO, &frame), Err(Discard::Malformed));
    *frame.last_mut().unwrap() = 2;
    assert!(end.handle_frame(Instant::ZERO, &frame).is_ok());
    assert!(end.counters().contains(&("frames-malformed", 2)));
}

/// A queue on the way that has become too long drops what nobody can know yet.
#[test]
fn what_is_interactive_goes_once_more_when_the_line_becomes_much_slower() {
    let line = |megabits: u64| LineLimits::new(1500, Some(base::Rate::from_bps(megabits * 1_000_000)));
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    for (treatment, megabits, sent) in
        [(Treatment::Interactive, 37, 5), (Treatment::Interactive, 38, 0), (Treatment::Reliable, 5, 0)]
    {
        let [mut near, mut far] = [(); 2].map(|()| Coded::new(Config::default(), &line(50)));
        let kinds = |near: &mut Coded, now| {
            let mut kinds = Vec::new();
            while near.demand(now) == Demand::Fresh {
                kinds.extend(near.poll_frame(now, &mut Vec::new()).map(|info| info.kind));
            }
            kinds
        };
        near.offer(at(0), packet(2, 0, 64), treatment).unwrap();
        assert_eq!(kinds(&mut near, at(0)), [FrameKind::New]);
        near.set_line(&line(megabits));
        let mut again = 0;
        for now in 100..1000 {
            // Whatever comes has heard of nothing.
            let mut frame = Vec::new();
            far.poll_frame(at(now), &mut frame).unwrap();
            near.handle_frame(at(now), &frame).unwrap();
            again +=
                kinds(&mut near, at(now)).iter().filter(|kind| **kind == FrameKind::Retransmission).count();
        }
        assert_eq!(again, sent, "{treatment:?}, {megabits} Mbit/s");
    }
}
