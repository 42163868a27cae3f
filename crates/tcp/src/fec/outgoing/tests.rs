use super::super::Incoming;
use super::*;

const KEY: Key = Key([3, 4]);
const START: u64 = 1 << 32;
const LT: FecConfig = FecConfig { proactive: true, reactive: true, adaptive_mss: true, ..FecConfig::OFF };
const PLUS: FecConfig =
    FecConfig { repair: RepairRule::Missing, estimator: crate::config::Estimator::Steady, ..LT };
const SRTT: Duration = Duration::from_millis(100);

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// A sender of a stream, whose receiver is another machine of ours.
struct Script {
    outgoing: Outgoing,
    buffer: SendBuffer,
    una: u64,
    nxt: u64,
    cwnd: u64,
    now: Instant,
    incoming: Incoming,
}

impl Script {
    fn new(config: FecConfig, bytes: usize) -> Self {
        let mut buffer = SendBuffer::new(1 << 22);
        let data: Vec<u8> = (0..bytes as u64).map(|at| byte_at(START + at)).collect();
        assert_eq!(buffer.write(&data), bytes);
        Self {
            outgoing: Outgoing::new(config, 1000, KEY),
            buffer,
            una: START,
            nxt: START,
            cwnd: 20_000,
            now: ms(1),
            incoming: Incoming::new(KEY),
        }
    }

    /// Sends the rest of the block, which `lost` says of by its numbers; how many segments that were.
    fn send_block(&mut self, lost: &[u8]) -> u32 {
        let end = self.una + self.buffer.len() as u64;
        let begun = self.outgoing.begin(self.una, self.nxt, self.cwnd);
        let mss = begun.unwrap_or_else(|| self.outgoing.blocks.back().unwrap().mss);
        let mut count = 0;
        while self.outgoing.blocks.back().is_some_and(|block| !block.closed) && self.nxt < end {
            let len = u64::from(mss).min(end - self.nxt);
            let place = self.outgoing.on_source(self.nxt, len as u32).unwrap();
            let data: Vec<u8> = (self.nxt..self.nxt + len).map(byte_at).collect();
            if !lost.contains(&place.number) {
                self.incoming.on_source(self.now, place, self.nxt, &data);
            }
            self.nxt += len;
            count += 1;
            self.outgoing.close_if_due(len as u32, self.nxt == end, self.una, &self.buffer);
        }
        count
    }

    /// Sends all repairs that are due, which all come or are all lost; how many of each kind, and what was computed from them.
    fn send_repairs(&mut self, come: bool) -> ([u32; 2], Vec<(u64, Vec<u8>)>) {
        let (mut counts, mut found) = ([0; 2], Vec::new());
        while let Some(due) = self.outgoing.next() {
            let symbol = self.outgoing.take(self.now, due, self.una, &self.buffer);
            counts[usize::from(due.reason == Reason::Reactive)] += 1;
            assert_eq!(symbol.data.len(), due.len as usize);
            if come {
                let says = (symbol.start, symbol.tail, symbol.check);
                self.incoming.on_repair(self.now, symbol.place, says, &symbol.data);
                found.extend(self.incoming.decode());
            }
        }
        (counts, found)
    }

    fn acknowledge(&mut self, ack: u64) {
        self.outgoing.on_acknowledged(self.una, ack, &self.buffer);
        self.buffer.acknowledge((ack - self.una) as usize);
        self.una = ack;
    }

    fn report(&mut self) {
        if let Some(report) = self.incoming.report(self.una) {
            self.outgoing.on_report(&report);
        }
    }
}

fn assert_genuine(found: &[(u64, Vec<u8>)]) {
    for (start, data) in found {
        assert!(data.iter().zip(*start..).all(|(byte, at)| *byte == byte_at(at)));
    }
}

/// 20 kB without losses: 19 segments and a repair, which holds new data until it is out.
#[test]
fn a_block_is_laid_out_sent_and_repaired() {
    let mut script = Script::new(LT, 100_000);
    assert_eq!(script.send_block(&[7]), 19);
    assert!(script.outgoing.holds_new_data() && script.outgoing.has_work());
    assert_eq!(script.outgoing.begin(script.una, script.nxt, 20_000), None);
    let (counts, found) = script.send_repairs(true);
    assert_eq!((counts, found.len(), found[0].0), ([1, 0], 1, START + 7000));
    assert_genuine(&found);
    assert!(!script.outgoing.holds_new_data() && !script.outgoing.has_work());
    assert_eq!(script.outgoing.bytes_in_flight(), 1000);
}

/// A block ends early with the data, or with a short segment; its last segment is padded in the code alone.
#[test]
fn a_block_ends_with_the_data() {
    for (bytes, segments) in [(2500, 3), (1, 1), (1000, 1), (18_999, 19)] {
        let mut script = Script::new(LT, bytes);
        assert_eq!(script.send_block(&[segments - 1]), u32::from(segments), "{bytes}");
        let (counts, found) = script.send_repairs(true);
        assert_eq!((counts[0], found.len()), (1, 1), "{bytes}");
        assert_genuine(&found);
        script.acknowledge(START + bytes as u64);
        assert!(script.outgoing.blocks.is_empty());
        assert_eq!((script.outgoing.bytes_in_flight(), script.outgoing.memory()), (0, 0));
    }
}

/// What was acknowledged of a block and left the buffer is kept to repair the rest from.
#[test]
fn acknowledged_data_are_kept_for_repairs() {
    let mut script = Script::new(LT, 100_000);
    script.send_block(&[7, 9]);
    script.send_repairs(false);
    script.acknowledge(START + 7000);
    assert_eq!(script.outgoing.memory(), 7000);
    for _ in 0..2 {
        script.outgoing.on_duplicate(script.una);
        script.now += SRTT;
        script.outgoing.on_delivered(script.now);
    }
    let (counts, found) = script.send_repairs(true);
    assert_eq!((counts[1], found.len()), (1, 0));
    script.outgoing.on_delivered(script.now + SRTT);
    script.outgoing.on_duplicate(script.una);
    let (counts, found) = script.send_repairs(true);
    assert_eq!((counts[1], found.len()), (1, 2));
    assert_genuine(&found);
}

/// Duplicates ask for no more than is sent in any case, in a round trip.
#[test]
fn duplicates_are_answered_within_limits() {
    let mut script = Script::new(LT, 100_000);
    script.send_block(&[3]);
    script.send_repairs(false);
    for _ in 0..100 {
        script.outgoing.on_duplicate(script.una);
    }
    assert_eq!(script.send_repairs(false).0, [0, 1]);
    for _ in 0..100 {
        script.outgoing.on_duplicate(script.una);
    }
    assert_eq!(script.send_repairs(false).0, [0, 0], "it is under way");
    // Nothing is due of a block that is acknowledged.
    script.outgoing.on_delivered(ms(1000));
    script.outgoing.on_duplicate(script.una);
    script.acknowledge(START + 19_000);
    assert!(!script.outgoing.has_work());
}

/// Numbers are used up, and then there are no more repairs.
#[test]
fn numbers_run_out() {
    let mut script = Script::new(LT, 100_000);
    script.send_block(&[3]);
    let mut sent = 0;
    for turn in 1..1000 {
        script.now = ms(turn);
        script.outgoing.on_delivered(script.now);
        script.outgoing.on_duplicate(script.una);
        sent += script.send_repairs(false).0.iter().sum::<u32>();
    }
    assert_eq!(sent, 256 - 19);
    assert_eq!(script.outgoing.next().map(|due| due.len), None);
}

/// Repairs leave the pipe by acknowledgements of their block, of what was sent later, and by time-outs.
#[test]
fn repairs_leave_the_network() {
    let fresh = || {
        let mut script = Script::new(LT, 100_000);
        script.send_block(&[]);
        script.send_repairs(true);
        assert_eq!(script.outgoing.bytes_in_flight(), 1000);
        script
    };
    let mut script = fresh();
    script.acknowledge(START + 18_999);
    assert_eq!(script.outgoing.bytes_in_flight(), 1000);
    script.acknowledge(START + 19_000);
    assert_eq!(script.outgoing.bytes_in_flight(), 0);
    let mut script = fresh();
    script.outgoing.on_delivered(ms(1));
    assert_eq!(script.outgoing.bytes_in_flight(), 1000);
    script.outgoing.on_delivered(ms(2));
    assert_eq!(script.outgoing.bytes_in_flight(), 0);
    let mut script = fresh();
    script.outgoing.on_timeout(script.una, &script.buffer);
    assert_eq!((script.outgoing.bytes_in_flight(), script.outgoing.has_work()), (0, false));
}

/// Reports feed the estimate; repairs that were not sent are not missed.
#[test]
fn reports_feed_the_estimate() {
    let mut script = Script::new(LT, 100_000);
    script.send_block(&[1, 2, 3, 4, 5]);
    script.send_repairs(true);
    script.send_block(&[]);
    script.report();
    assert!((script.outgoing.estimate.rate() - 0.25).abs() < 1e-9);
    script.report();
    assert!((script.outgoing.estimate.rate() - 0.25).abs() < 1e-9, "a block counts once");

    let mut script = Script::new(LT, 100_000);
    assert_eq!(script.send_block(&[]), 19);
    script.acknowledge(START + 19_000);
    assert!(!script.outgoing.has_work(), "the repair is not needed");
    script.send_block(&[]);
    script.report();
    assert_eq!((script.outgoing.estimate.rate(), script.outgoing.unreported.len()), (0.0, 1));
}

/// Reports of what never was change nothing.
#[test]
fn lies_are_no_news() {
    let mut script = Script::new(PLUS, 100_000);
    script.send_block(&[]);
    script.send_repairs(true);
    for block in 2..=255 {
        script.outgoing.on_report(&Report { ended: [(block, 0), (block, 9)], missing: (block, 255) });
    }
    assert_eq!((script.outgoing.estimate.rate(), script.outgoing.has_work()), (0.0, false));
    script.outgoing.on_report(&Report { ended: [(1, 0), (1, 0)], missing: (1, 255) });
    assert_eq!(script.outgoing.estimate.rate(), 1.0);
    let (counts, _) = script.send_repairs(false);
    assert!(counts[1] <= 256 - 20, "{counts:?}");
}

/// A receiver that never reports does not know the code.
#[test]
fn who_never_reports_gets_no_repairs() {
    let mut script = Script::new(LT, 3_000_000);
    let mut sent = 0;
    for _ in 0..60 {
        script.send_block(&[]);
        sent += script.send_repairs(true).0[0];
        script.acknowledge(script.nxt);
        script.outgoing.stop_if_unheard();
    }
    assert_eq!((sent, script.outgoing.codes(), script.outgoing.memory()), (DEAF_AFTER, false, 0));
    assert!(script.outgoing.cuts(), "segments still follow the window");
}

/// A silence brings repairs at most three times, then only the retransmission timer does; nothing wakes for a block of which nothing was
/// sent, or none.
#[test]
fn silences_end() {
    let mut script = Script::new(PLUS, 100_000);
    script.outgoing.begin(script.una, script.nxt, 20_000);
    script.outgoing.restart_probe(ms(1), SRTT, true);
    assert_eq!(script.outgoing.deadline(), Instant::MAX);
    script.send_block(&[3]);
    script.send_repairs(false);
    script.outgoing.restart_probe(ms(1), SRTT, false);
    let mut probes = 0;
    while script.outgoing.deadline() < Instant::MAX {
        script.now = script.outgoing.deadline();
        script.outgoing.on_silence(script.now, SRTT, script.una, &script.buffer);
        probes += 1;
        let (counts, _) = script.send_repairs(false);
        assert!((1..=MOST_PROBED).contains(&counts[1]), "{counts:?}");
    }
    assert_eq!(probes, MOST_PROBES);
    script.outgoing.restart_probe(script.now, SRTT, true);
    assert!(script.outgoing.deadline() < Instant::MAX);
    script.acknowledge(START + 19_000);
    script.outgoing.restart_probe(script.now, SRTT, true);
    assert_eq!(script.outgoing.deadline(), Instant::MAX);
}

/// The path gets narrower: blocks of larger segments are not repaired any more, for their repairs would not pass.
#[test]
fn repairs_that_would_not_pass_are_not_sent() {
    for config in [LT, PLUS] {
        let mut script = Script::new(config, 100_000);
        script.send_block(&[3]);
        script.outgoing.set_most(600);
        assert!(!script.outgoing.has_work() && !script.outgoing.holds_new_data());
        script.outgoing.on_duplicate(script.una);
        script.outgoing.on_timeout(script.una, &script.buffer);
        script.outgoing.on_silence(ms(9), SRTT, script.una, &script.buffer);
        assert_eq!(script.send_repairs(true).0, [0, 0]);
        script.acknowledge(START + 5000);
        assert_eq!(script.outgoing.memory(), 0);
        assert!(script.outgoing.begin(script.una, script.nxt, 20_000).unwrap() <= 600);
    }
}

/// Memory for a block and its repairs, and none beyond what the host has.
#[test]
fn memory_is_bounded() {
    let mut script = Script::new(LT, 3_000_000);
    script.cwnd = 1 << 30;
    let mut most = 0;
    for _ in 0..40 {
        script.send_block(&[]);
        most = most.max(script.outgoing.memory());
        script.send_repairs(false);
        let ack = script.una + 13_000;
        script.acknowledge(ack);
        most = most.max(script.outgoing.memory());
    }
    assert!(most <= 2 * 64 * 1000, "{most}");
    script.outgoing.set_allowance(0);
    let before = script.outgoing.memory();
    script.acknowledge(script.una + 100);
    script.send_block(&[]);
    assert!(script.outgoing.memory() <= before);
    script.outgoing.rest();
    assert_eq!((script.outgoing.memory(), script.outgoing.bytes_in_flight()), (0, 0));
}

/// A receiver that says something, but nothing of these blocks: what waits to be reported is bounded, whatever has become of the blocks.
#[test]
fn what_waits_to_be_reported_is_bounded() {
    for gives_up in [false, true] {
        let mut script = Script::new(LT, 4_000_000);
        for _ in 0..200 {
            if gives_up {
                // The first segment is acknowledged before the block ends, and there is no memory to keep it.
                let mss = script.outgoing.begin(script.una, script.nxt, script.cwnd).unwrap();
                script.outgoing.on_source(script.nxt, mss);
                script.nxt += u64::from(mss);
                script.outgoing.set_allowance(0);
                script.acknowledge(script.nxt);
                script.outgoing.set_allowance(usize::MAX);
            }
            script.send_block(&[]);
            script.send_repairs(false);
            script.acknowledge(script.nxt);
            script.outgoing.on_report(&Report { ended: [(0, 0), (0, 0)], missing: (0, 0) });
            script.outgoing.stop_if_unheard();
            assert!(script.outgoing.unreported.len() <= MOST_BLOCKS);
        }
        assert!(script.outgoing.codes());
    }
}

/// The timer after a silence: two round trips at first and twice as long each time, at least 10 ms; whoever is heard begins anew, and data
/// that go out do not put it off.
#[test]
fn silences_become_longer() {
    let mut script = Script::new(PLUS, 100_000);
    script.send_block(&[3]);
    script.outgoing.restart_probe(ms(1), SRTT, false);
    assert_eq!(script.outgoing.deadline(), ms(201));
    script.outgoing.restart_probe(ms(150), SRTT, false);
    assert_eq!(script.outgoing.deadline(), ms(201));
    for (at, next) in [(201, ms(601)), (601, ms(1401)), (1401, Instant::MAX)] {
        script.outgoing.on_silence(ms(at), SRTT, script.una, &script.buffer);
        assert_eq!(script.outgoing.deadline(), next, "{at}");
    }
    script.outgoing.restart_probe(ms(2000), SRTT, true);
    assert_eq!(script.outgoing.deadline(), ms(2200));
    script.outgoing.restart_probe(ms(3000), Duration::from_millis(2), true);
    assert_eq!(script.outgoing.deadline(), ms(3010));
}

/// A segment that is sent again has its place only where it is one of those that were sent: whole, or the last of its block.
#[test]
fn places_are_those_of_before() {
    let mut script = Script::new(LT, 100_000);
    script.send_block(&[]);
    script.send_repairs(true);
    script.cwnd = 10_500;
    let second = script.nxt;
    assert_eq!(script.send_block(&[]), 9);
    let numbers = |script: &Script, start: u64, len: u32| {
        script.outgoing.place_of(start, len).map(|it| (it.block, it.number, it.again))
    };
    assert_eq!(numbers(&script, START, 1000), Some((1, 0, true)));
    assert_eq!(numbers(&script, START + 18_000, 1000), Some((1, 18, true)));
    assert_eq!(numbers(&script, second, 1000), Some((2, 0, true)));
    assert_eq!(numbers(&script, second + 2000, 1000), Some((2, 2, true)));
    for (start, len) in
        [(START + 500, 500), (START, 999), (START + 1, 1000), (START, 500), (script.nxt, 1000)]
    {
        assert_eq!(numbers(&script, start, len), None, "{len} bytes at {}", start - START);
    }
    // Two at once end where the second one does.
    assert_eq!(numbers(&script, START, 2000), None);
}

/// A report of what is missing of the oldest block brings as many repairs as make it whole in all likelihood, less those that are under way;
/// one of another block brings none.
#[test]
fn reports_bring_what_is_missing() {
    let mut script = Script::new(PLUS, 100_000);
    script.send_block(&[3, 4]);
    script.send_repairs(false);
    let report = |script: &mut Script, block, missing| {
        script.outgoing.on_report(&Report { ended: [(0, 0), (0, 0)], missing: (block, missing) });
        script.send_repairs(false).0[1]
    };
    assert_eq!(report(&mut script, 2, 2), 0, "another block");
    assert_eq!(report(&mut script, 1, 0), 0, "nothing is missing");
    assert_eq!(report(&mut script, 1, 2), 2);
    assert_eq!(report(&mut script, 1, 2), 0, "they are under way");
    assert_eq!(report(&mut script, 1, 3), 1, "one more");
    // Something that was sent later has come: those are lost.
    script.outgoing.on_delivered(script.now + SRTT);
    assert_eq!(report(&mut script, 1, 3), 3);
    // A segment that was sent again repairs its block too, and no other.
    script.outgoing.on_delivered(script.now + SRTT);
    script.outgoing.on_resent(script.now, START + 3000);
    assert_eq!(report(&mut script, 1, 3), 2);
    script.outgoing.on_delivered(script.now + SRTT);
    script.outgoing.on_resent(script.now, START + 19_000);
    assert_eq!(report(&mut script, 1, 3), 3);
}

/// After a silence as many repairs go out as the latest report says are missing, ten at most.
#[test]
fn a_silence_brings_what_was_missing() {
    for (missing, repairs) in [(0, 1), (1, 1), (4, 4), (12, 10)] {
        let mut script = Script::new(PLUS, 100_000);
        script.send_block(&[3]);
        script.send_repairs(false);
        script.outgoing.on_report(&Report { ended: [(0, 0), (0, 0)], missing: (1, missing) });
        script.send_repairs(false);
        script.outgoing.on_silence(script.now + SRTT, SRTT, script.una, &script.buffer);
        assert_eq!(script.send_repairs(false).0, [0, repairs], "{missing}");
    }
}

/// A short block has no more repairs than it needs, whatever was planned for a full one.
#[test]
fn a_short_block_has_few_repairs() {
    let mut script = Script::new(LT, 1000);
    (0..200).for_each(|_| script.outgoing.estimate.on_block(20, 14));
    script.cwnd = 60_000;
    assert_eq!(script.send_block(&[]), 1);
    let rate = script.outgoing.estimate.rate();
    assert_eq!(script.send_repairs(true).0[0], plan::least_repairs(rate), "at {rate}");
}

/// After a silence repairs ask to be sent, and those that were lost before fill no window.
#[test]
fn a_silence_asks_for_repairs() {
    let mut script = Script::new(PLUS, 100_000);
    script.send_block(&[3]);
    script.send_repairs(false);
    assert!(script.outgoing.bytes_in_flight() > 0 && !script.outgoing.has_work());
    script.outgoing.on_silence(ms(500), SRTT, script.una, &script.buffer);
    assert_eq!(script.outgoing.bytes_in_flight(), 0, "lost repairs fill the window");
    assert!(script.outgoing.has_work(), "repairs wait for other traffic");
}

/// Duplicates and reports ask for repairs of a block that is out whole, by the rule that is configured, and by that alone.
#[test]
fn repairs_are_asked_for_once_and_by_one_rule() {
    for (config, by_duplicates) in [(LT, true), (PLUS, false)] {
        let mut script = Script::new(config, 100_000);
        script.outgoing.begin(script.una, script.nxt, script.cwnd);
        script.outgoing.on_source(script.nxt, 1000);
        let number = script.outgoing.blocks[0].number;
        let report = Report { ended: [(0, 0), (0, 0)], missing: (number, 2) };
        script.outgoing.on_duplicate(script.una);
        script.outgoing.on_report(&report);
        assert_eq!(script.outgoing.due, 0, "the block is not over");
        script.nxt += 1000;
        script.send_block(&[]);
        script.outgoing.on_report(&report);
        assert_eq!(script.outgoing.due, 0, "its own repairs have yet to leave");
        script.send_repairs(false);
        script.outgoing.on_report(&report);
        assert_eq!(script.outgoing.due > 0, !by_duplicates);
        script.outgoing.due = 0;
        script.outgoing.on_duplicate(script.una);
        assert_eq!(script.outgoing.due > 0, by_duplicates);
        script.outgoing.due = 0;
        script.outgoing.blocks[0].give_up();
        script.outgoing.on_duplicate(script.una);
        script.outgoing.on_report(&report);
        assert_eq!(script.outgoing.due, 0, "it cannot be repaired");
    }
}
