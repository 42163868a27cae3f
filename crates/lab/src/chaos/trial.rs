//! One scenario, run and held to what has to be true.

use core::fmt;
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;

use base::{Duration, Instant};
use serde::Serialize;

use crate::run::{Run, Running, TransactionsResult, Watch};
use crate::scenario::{Scenario, Suite};

/// What may be wrong with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// A machine panicked.
    Panic,
    /// A node acts again and again without time going on, or a run could not be begun.
    Stuck,
    /// Bytes arrived that were not sent.
    Damaged,
    /// A datagram arrived twice.
    Twice,
    /// Something that ends did not arrive, although the path was open for long enough.
    Unfinished,
    /// A connection broke.
    Broken,
    /// More was done than packets give reason for.
    Work,
    /// Memory is kept for what is over.
    Memory,
    /// A second run came out otherwise.
    Otherwise,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Panic => "panic",
            Self::Stuck => "stuck",
            Self::Damaged => "damaged",
            Self::Twice => "twice",
            Self::Unfinished => "unfinished",
            Self::Broken => "broken",
            Self::Work => "work",
            Self::Memory => "memory",
            Self::Otherwise => "otherwise",
        })
    }
}

/// What came of a run.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) packets: u64,
    pub(super) events: u64,
    pub(super) verdict: Verdict,
}

#[derive(Debug)]
pub(super) enum Verdict {
    Held,
    Refused(String),
    Failed(Fault, String),
}

/// Between two looks at how much was done.
const STEP: Duration = Duration::from_secs(100);
/// By then the last datagram has been sent and has come, if it comes: a line that is blocked brings it minutes later. No longer,
/// as most of the work of many cases is what an idle line of some protocols is filled with.
const DATAGRAMS_ARE_OVER: Duration = Duration::from_secs(300);
/// Inputs that nodes may handle before a run is given up, whatever it carries.
const MOST_EVENTS: u64 = 60_000_000;
/// Inputs for each packet or frame that a line carries, at most, and for each second besides: sessions, timers and fillers.
const EVENTS_PER_PACKET: u64 = 40;
const EVENTS_PER_SECOND: u64 = 2000;
/// How long after the end of a run all of it is over: TIME-WAIT, what waits for acknowledgements, keys that are made anew.
const REST: Duration = Duration::from_secs(500);
/// Bytes that a node may keep then: notes on a window's frames are kept, as the next burst wants them again.
const MOST_KEPT: usize = 256 << 10;

/// Runs a scenario's text twice.
pub(super) fn run(text: &str) -> Trial {
    let refused = |why: String| Trial { packets: 0, events: 0, verdict: Verdict::Refused(why) };
    let suite = match Suite::parse("chaos.toml", text, Path::new(""), &[]) {
        Ok(suite) => suite,
        Err(error) => return refused(error.message),
    };
    let failed = |fault, message| Trial { packets: 0, events: 0, verdict: Verdict::Failed(fault, message) };
    let first = match once(&suite.scenario) {
        Ok(first) => first,
        Err((fault, message)) => return failed(fault, message),
    };
    let (packets, events) = (carried(&first), first.events);
    let verdict = match judge(&first, packets).or_else(|| again(&first, &suite.scenario).err()) {
        None => Verdict::Held,
        Some((fault, message)) => Verdict::Failed(fault, message),
    };
    Trial { packets, events, verdict }
}

/// Runs it once.
fn once(scenario: &Scenario) -> Result<Run, (Fault, String)> {
    caught(|| to_the_end(scenario)?.finish().map_err(|error| stuck(&error)))
}

/// Runs it once more: it has to come out the same, and to leave nothing behind.
fn again(first: &Run, scenario: &Scenario) -> Result<(), (Fault, String)> {
    caught(|| {
        let mut running = to_the_end(scenario)?;
        let hash = format!("{:016x}", running.trace_hash());
        if hash != first.trace_hash {
            return Err((Fault::Otherwise, format!("{} and then {hash}", first.trace_hash)));
        }
        running.rest(running.now() + REST).map_err(|error| stuck(&error))?;
        match running.most_kept() {
            Some((name, bytes)) if bytes > MOST_KEPT => {
                Err((Fault::Memory, format!("\"{name}\" keeps {bytes} bytes {REST} after the end")))
            }
            _ => Ok(()),
        }
    })
}

fn stuck(error: &std::io::Error) -> (Fault, String) {
    (Fault::Stuck, error.to_string())
}

/// Runs it until all has arrived that has to, or its time is over.
fn to_the_end(scenario: &Scenario) -> Result<Running<'_>, (Fault, String)> {
    let mut running = Running::begin("chaos", Cow::Borrowed(scenario), scenario.seed, &Watch::default())
        .map_err(|error| stuck(&error))?;
    while !running.until(running.now() + STEP).map_err(|error| stuck(&error))? {
        if running.events() > MOST_EVENTS {
            let (events, now) = (running.events(), running.now());
            return Err((Fault::Work, format!("{events} inputs by {now}, and no end")));
        }
        if running.now().saturating_since(Instant::ZERO) >= DATAGRAMS_ARE_OVER
            && running.has_what_is_promised()
        {
            break;
        }
    }
    Ok(running)
}

/// Runs something whose panics are faults too.
fn caught<T>(run: impl FnOnce() -> Result<T, (Fault, String)>) -> Result<T, (Fault, String)> {
    quietly(|| panic::catch_unwind(AssertUnwindSafe(run))).unwrap_or_else(|thrown| {
        let said = thrown.downcast_ref::<String>().cloned();
        let said = said.or_else(|| thrown.downcast_ref::<&str>().map(|said| (*said).to_owned()));
        Err((Fault::Panic, said.unwrap_or_default()))
    })
}

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Does something whose panics are caught and told elsewhere.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                before(info);
            }
        }));
    });
    IS_QUIET.set(true);
    let result = work();
    IS_QUIET.set(false);
    result
}

/// Packets that lines have carried, and frames with something in them (those of plain links are all `sent`): an idle line of some
/// protocols is full of fillers.
fn carried(run: &Run) -> u64 {
    ["new", "retransmitted", "repair", "unreliable", "control", "sent"]
        .map(|kind| frames(run, kind))
        .iter()
        .sum::<u64>()
        + counted(run, "packets-sent")
}

fn frames(run: &Run, kind: &str) -> u64 {
    counted(run, &format!("endpoint-frames-{kind}"))
}

/// The sum of a counter over all lines.
fn counted(run: &Run, name: &str) -> u64 {
    run.links.values().filter_map(|counters| counters.get(name)).sum()
}

fn judge(run: &Run, packets: u64) -> Option<(Fault, String)> {
    let no = |fault: Fault, message: String| Some((fault, message));
    if !run.intact {
        return no(Fault::Damaged, "bytes arrived that were not sent".to_owned());
    }
    if let Some(source) = run.sources.iter().find(|source| source.duplicates > 0) {
        let (name, count) = (&source.name, source.duplicates);
        return no(Fault::Twice, format!("{count} datagrams of {name} arrived twice"));
    }
    let broken =
        |failed: bool, name: &str| failed.then(|| (Fault::Broken, format!("a connection of {name} broke")));
    let transfers = run.transfers.iter().map(|it| (it.failed, &it.name));
    let sources = run.sources.iter().map(|it| (it.failed, &it.name));
    let transactions = run.transactions.iter().map(|it| (it.failed > 0, &it.name));
    if let Some(fault) =
        transfers.chain(sources).chain(transactions).find_map(|(failed, name)| broken(failed, name))
    {
        return Some(fault);
    }
    if let Some(transfer) = run.transfers.iter().find(|transfer| transfer.seconds.is_none()) {
        let (name, bytes) = (&transfer.name, transfer.bytes);
        return no(Fault::Unfinished, format!("{name} has {bytes} bytes at the end"));
    }
    // Starts that are left out because too many are under way are no fault.
    let waits = |it: &&TransactionsResult| it.under_way > 0 || it.completed == 0;
    if let Some(TransactionsResult { name, under_way, completed, .. }) = run.transactions.iter().find(waits) {
        return no(
            Fault::Unfinished,
            format!("{name} has {completed} transactions, and {under_way} under way"),
        );
    }
    if let Some(source) = run.sources.iter().find(|it| it.transport == "tcp" && it.undelivered > 0) {
        let (name, count) = (&source.name, source.undelivered);
        return no(Fault::Unfinished, format!("{count} records of {name} have not come"));
    }
    let most =
        (packets + frames(run, "filler")) * EVENTS_PER_PACKET + (run.seconds as u64 + 1) * EVENTS_PER_SECOND;
    if run.events > most {
        let (events, seconds) = (run.events, run.seconds);
        return no(Fault::Work, format!("{events} inputs for {packets} packets in {seconds:.0} s"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_plain_link_carries_counts() {
        let text = "name = \"call\"\nseed = 1\nduration = \"40000 s\"\n[tcp]\npreset = \"linux\"\n\
             [link.sky]\nends = [\"a\", \"b\"]\nprotocol = \"plain\"\n\
             [link.sky.channel]\nrate = \"64 kbit/s\"\ndelay = \"10 ms\"\n\
             [traffic.call.rate]\nfrom = \"a\"\nto = \"b\"\nrate = \"16 kbit/s\"\nrecord = \"200 B\"\n\
             transport = \"udp\"\nduration = \"5 s\"\n";
        let scenario = Suite::parse("call.toml", text, Path::new(""), &[]).unwrap().scenario;
        assert_eq!(carried(&once(&scenario).unwrap()), 50);
    }
}
