//! Traces of windows and drops: what they say is what TCP and the queue say themselves.

use std::path::Path;

use longhaul_lab::run::{self, Run, Watch};
use longhaul_lab::scenario::Suite;

const FTP: &str = include_str!("../../../scenarios/peng/ftp.toml");

fn run(scheme: usize, changes: &[&str], watch: &Watch) -> Run {
    let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
    let suite = Suite::parse("ftp.toml", FTP, Path::new(""), &changes).unwrap();
    let (name, scenario) = &suite.schemes[scheme];
    run::run(name, scenario, 1, watch).unwrap()
}

const SMALL: [&str; 2] = ["link.satellite.queue.drop-tail.bytes=20 kB", "traffic.second.bulk.size=200 kB"];

fn watched() -> Watch {
    Watch { flows: true, windows: true, ..Watch::default() }
}

/// Goal: watching changes nothing, and every drop that the queue counts has its time.
#[test]
fn every_drop_has_its_time() {
    let run = run(0, &SMALL, &watched());
    assert_eq!(run.trace_hash, self::run(0, &SMALL, &Watch::default()).trace_hash);
    let dropped = run.links["satellite/down"]["queue-dropped-for-bytes"];
    let times = &run.drops["satellite/down"];
    assert!(dropped > 0 && times.len() as u64 == dropped && times.is_sorted(), "{dropped}");
    assert!(run.drops["satellite/up"].is_empty());
}

/// Goal: a connection's trace starts with the initial window, grows by whole segments at most in slow start, and ends
/// with its data; without sharing there is no aggregate.
#[test]
fn a_window_is_traced_from_its_first_segment_to_its_last() {
    let run = run(0, &[], &watched());
    let trace = &run.windows[0];
    assert!(trace.aggregates().is_empty());
    assert_eq!(trace.connections().len(), 6);
    for windows in trace.connections() {
        let flow = run.flows.iter().find(|flow| flow.ports == windows.ports).unwrap();
        assert_eq!(windows.marks[0].cwnd, 1460);
        assert!(windows.marks.windows(2).all(|pair| pair[1].cwnd - pair[0].cwnd <= 1460));
        let (last, _) = flow.acks[flow.acks.len() - 1];
        assert!(windows.marks.iter().all(|mark| mark.at <= last));
        let first = flow.segments[0].at;
        assert_eq!((windows.at(first).unwrap().cwnd, windows.before(windows.marks[0].at)), (1460, None));
    }
}

/// Goal: the aggregate is the sum of its members' windows, apart from the clamp at one segment each.
#[test]
fn an_aggregate_is_the_sum_of_its_members() {
    let run = run(1, &SMALL, &watched());
    let trace = &run.windows[0];
    let [aggregate] = trace.aggregates() else { panic!("one destination") };
    let mut sums = 0;
    for pair in aggregate.marks.windows(2) {
        // The last state of an instant; the others passed between two calls of the same allocation.
        let mark = pair[0];
        if pair[1].at == mark.at || mark.num_connections != 3 {
            continue;
        }
        assert!(mark.used_cwnd <= mark.n_cwnd + 3 * 1460, "{mark:?}");
        let members = trace.connections().iter().filter(|windows| {
            windows.marks[0].at <= mark.at && windows.marks[windows.marks.len() - 1].at >= mark.at
        });
        let windows: Vec<u64> = members.filter_map(|windows| Some(windows.at(mark.at)?.cwnd)).collect();
        if windows.len() == 3 && windows.iter().all(|&cwnd| cwnd > 1460) {
            sums += 1;
            assert_eq!(windows.iter().sum::<u64>(), mark.used_cwnd, "{mark:?}");
        }
    }
    assert!(sums > 50, "{sums}");
    assert!(aggregate.statistics.losses + aggregate.statistics.timeouts > 0);
}
