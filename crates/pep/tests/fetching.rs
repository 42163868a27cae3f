//! Many short fetches over a busy link: none waits for a timer.

use std::collections::{BTreeMap, BTreeSet};

use crate::chain::order::{Class, Order};
use crate::chain::{CLIENT, Chain, Setup, address, stream};
use base::{Duration, Instant, Rate, Rng};
use longhaul_pep::{Answer, Config};
use tcp::{ConnectionId, Host};

/// Fetches of 20 kB, some at once, in rounds that begin when the one before is over.
#[derive(Clone, Debug)]
struct Load {
    rounds: usize,
    at_once: usize,
    /// The fetches of a round begin within this.
    spread: Duration,
    /// How long the server takes to answer.
    thinks: Duration,
    /// Whether a download and an upload fill the link meanwhile.
    is_busy: bool,
}

const REQUEST: usize = 300;
const ANSWER: usize = 20_000;
/// What a fetch may take beyond the floor.
const SLACK: Duration = Duration::from_secs(1);

/// A load on a chain, under way.
struct Fetching {
    chain: Chain,
    setup: Setup,
    load: Load,
    /// Fetches that are under way, and when they began.
    waiting: BTreeMap<ConnectionId, Instant>,
    /// When the server answers whom it has heard out.
    answers: BTreeSet<(Instant, ConnectionId)>,
    answered: BTreeSet<ConnectionId>,
    /// Ends of connections that fill the link: the client's and the server's.
    bulk: Vec<ConnectionId>,
    took: Vec<Duration>,
}

impl Fetching {
    fn new(setup: &Setup, load: &Load) -> Self {
        let mut chain = Chain::new(setup);
        chain.listen(80, &setup.host);
        chain.listen(81, &setup.host);
        let mut fetching = Self {
            chain,
            setup: setup.clone(),
            load: load.clone(),
            waiting: BTreeMap::new(),
            answers: BTreeSet::new(),
            answered: BTreeSet::new(),
            bulk: Vec::new(),
            took: Vec::new(),
        };
        // The server becomes known.
        fetching.round(&[Duration::ZERO]);
        fetching.took.clear();
        if load.is_busy {
            let id = fetching.chain.connect(81, &setup.host);
            fetching.serve(fetching.chain.now + Duration::from_secs(3), |chain| {
                chain.saw(id).connected_at.is_some()
            });
            fetching.bulk.push(id);
            let at_server = fetching.chain.server.connections().map(|(id, _)| id);
            let other = at_server
                .filter(|it| fetching.chain.server.connection(*it).is_some_and(|it| it.local().port() == 81));
            fetching.bulk.extend(other.collect::<Vec<_>>());
            fetching.answered.extend(&fetching.bulk[1..]);
            fetching.serve(fetching.chain.now + Duration::from_secs(3), |_| false);
        }
        fetching
    }

    fn fetch(&mut self) {
        let id =
            self.chain.client.connect(self.chain.now, crate::chain::server_at(80), &self.setup.host).unwrap();
        self.chain.client.write(self.chain.now, id, &stream(1, REQUEST)).unwrap();
        self.waiting.insert(id, self.chain.now);
        self.chain.settle();
    }

    /// Fetches that begin after so long each, until all are over.
    fn round(&mut self, begin: &[Duration]) {
        let start = self.chain.now;
        for after in begin {
            self.serve(start + *after, |_| false);
            self.fetch();
        }
        let end = self.chain.now + Duration::from_secs(60);
        self.serve(end, |_| false);
        assert!(self.waiting.is_empty(), "{} fetches are not over", self.waiting.len());
    }

    /// Lets the ends do what they have to until `until`, or until `done`, or until fetches that were under way are over.
    fn serve(&mut self, until: Instant, done: impl Fn(&Chain) -> bool) {
        let had_some = !self.waiting.is_empty();
        for _ in 0..1_000_000 {
            self.act();
            if self.chain.now >= until || done(&self.chain) || (had_some && self.waiting.is_empty()) {
                return;
            }
            let next = self.answers.first().map_or(Instant::MAX, |(at, _)| *at);
            let next = next.min(until).min(self.chain.now + Duration::from_millis(50));
            let (answered, waiting) = (&self.answered, &self.waiting);
            let asked = |chain: &Chain| {
                let new = |(id, seen): (&ConnectionId, &crate::chain::Seen)| {
                    seen.read.len() == REQUEST && !answered.contains(id)
                };
                chain.server_saw.iter().any(new)
            };
            let over = |chain: &Chain| {
                let is_over = |(id, seen): (&ConnectionId, &crate::chain::Seen)| {
                    seen.read.len() == ANSWER && waiting.contains_key(id)
                };
                chain.client_saw.iter().any(is_over)
            };
            let until = next.saturating_since(Instant::ZERO);
            self.chain.run(until, |chain| asked(chain) || over(chain) || done(chain));
        }
        panic!("it goes on and on");
    }

    fn act(&mut self) {
        let now = self.chain.now;
        for (&id, seen) in &self.chain.server_saw {
            if seen.read.len() == REQUEST && self.answered.insert(id) {
                self.answers.insert((now + self.load.thinks, id));
            }
        }
        while let Some(&(at, id)) = self.answers.first().filter(|(at, _)| *at <= now) {
            self.answers.remove(&(at, id));
            assert_eq!(self.chain.server.write(now, id, &stream(2, ANSWER)), Ok(ANSWER));
            self.chain.server.finish(now, id).unwrap();
            self.chain.server_saw.remove(&id);
        }
        self.waiting.retain(|id, began| {
            let Some(seen) = self.chain.client_saw.get(id).filter(|it| it.read.len() >= ANSWER) else {
                return true;
            };
            assert!(seen.read == stream(2, ANSWER) && seen.failed.is_none());
            self.took.push(now.saturating_since(*began));
            self.chain.client_saw.remove(id);
            self.chain.client.finish(now, *id).unwrap();
            false
        });
        for (host, id) in [&mut self.chain.client, &mut self.chain.server].into_iter().zip(&self.bulk) {
            while host.write(now, *id, &[7; 65_536]).unwrap() > 0 {}
        }
        for saw in [&mut self.chain.client_saw, &mut self.chain.server_saw] {
            let seen = saw.iter_mut().filter(|(id, _)| self.bulk.contains(id));
            seen.for_each(|(_, seen)| seen.read.clear());
        }
        self.chain.settle();
    }

    /// The most that a fetch of a round may take: round trips, the server, and the line, which it shares with the others and with
    /// what fills it.
    fn limit(&self, round_trips: u64) -> Duration {
        let late = match self.setup.order {
            Order::Kept => Duration::ZERO,
            Order::Late(_, late) | Order::Shuffled(late) => late,
        };
        let one_way = self.setup.delay + Duration::from_millis(3) + late;
        let bits = (self.load.at_once * (ANSWER + 15 * 40) * 8) as u64;
        let line = self.setup.rate.time_for(if self.load.is_busy { 2 * bits } else { bits });
        one_way.saturating_mul(2 * round_trips) + self.load.thinks + line + SLACK
    }
}

/// How long the fetches of a load took, and how many of them took longer than they may; in `round_trips` at best.
fn fetches(setup: &Setup, load: &Load, round_trips: u64) -> (Vec<Duration>, usize) {
    let mut rng = Rng::named(setup.seed, "begin");
    let mut fetching = Fetching::new(setup, load);
    for _ in 0..load.rounds {
        let mut begin = vec![Duration::ZERO; load.at_once];
        begin.iter_mut().for_each(|it| *it = Duration::from_nanos(rng.below(load.spread.as_nanos().max(1))));
        begin.sort_unstable();
        fetching.round(&begin);
    }
    assert_eq!(fetching.took.len(), load.rounds * load.at_once);
    let limit = fetching.limit(round_trips);
    let late = fetching.took.iter().filter(|took| **took > limit).count();
    (fetching.took, late)
}

fn expect_none_late(name: &str, setup: &Setup, load: &Load, round_trips: u64) -> usize {
    let (took, late) = fetches(setup, load, round_trips);
    let worst = took.iter().max().unwrap();
    assert_eq!(late, 0, "{name}: of {}, the slowest {worst:?}; {:?} {load:?}", took.len(), setup.order);
    took.len()
}

fn busy(at_once: usize) -> Load {
    Load { rounds: 2, at_once, spread: Duration::ZERO, thinks: Duration::ZERO, is_busy: true }
}

fn geostationary() -> Setup {
    Setup { rate: Rate::from_bps(20_000_000), longest_segment: 10_000, ..Setup::default() }
}

/// A server's answer right behind the answer to the call, while what the near proxy has to say waits for its turn at the link.
#[test]
fn answers_do_not_wait_for_a_timer_on_a_busy_link() {
    for longest_segment in [10_000, 1460, 64_000] {
        let setup = Setup { longest_segment, ..geostationary() };
        expect_none_late("200 at once", &setup, &busy(200), 1);
    }
}

/// Packets of one connection overtake each other, class by class, or as chance has it: what comes before the SYN-ACK is kept for it.
#[test]
fn classes_that_overtake_each_other_cost_no_time_out() {
    let classes = [Class::Opening, Class::Answering, Class::Closing, Class::Acknowledging, Class::Carrying];
    let late = classes
        .into_iter()
        .flat_map(|class| [5, 100].map(|ms| Order::Late(class, Duration::from_millis(ms))));
    let shuffled = [1, 20, 100].map(|ms| Order::Shuffled(Duration::from_millis(ms)));
    for order in late.chain(shuffled) {
        let setup = Setup { order, ..geostationary() };
        let load = Load { rounds: 2, at_once: 20, ..busy(20) };
        expect_none_late("20 at once", &setup, &load, 1);
    }
}

/// A client that has closed its connection calls again from the same port, while the proxies still close theirs over the link.
#[test]
fn a_port_is_used_again_at_once() {
    for answer in [Answer::Known, Answer::Never, Answer::Always] {
        let setup = Setup { near: Some(Config { answer, ..Config::default() }), ..geostationary() };
        let load = Load { is_busy: false, ..busy(1) };
        let mut fetching = Fetching::new(&setup, &load);
        let round_trips = if answer == Answer::Never { 2 } else { 1 };
        for again in 0..20 {
            let pause = Duration::from_millis(10 + 30 * again);
            fetching.serve(fetching.chain.now + pause, |_| false);
            let is_over = |it: &tcp::Connection| it.state() == tcp::State::Closed;
            assert!(fetching.chain.client.connections().all(|(_, it)| is_over(it)));
            fetching.chain.client = Host::new(address(CLIENT), Rng::named(1, CLIENT));
            fetching.chain.client_saw.clear();
            fetching.round(&[Duration::ZERO]);
            let took = fetching.took[again as usize];
            assert!(took < fetching.limit(round_trips), "{answer:?}, after {pause:?}: {took:?}");
        }
        let broken = fetching.chain.proxies.iter().flatten().map(|it| it.counters().broken).sum::<u64>();
        assert_eq!(broken, 0);
    }
}

/// A link, proxies and a load as the seed has them.
fn any_load(seed: u64) -> (Setup, Load, u64) {
    let mut rng = Rng::named(seed, "load");
    let mut pick = |from: &[u64]| from[rng.below(from.len() as u64) as usize];
    let classes = [Class::Opening, Class::Answering, Class::Closing, Class::Acknowledging, Class::Carrying];
    let late = Duration::from_millis(pick(&[1, 5, 20, 50, 200]));
    let order = match pick(&[0, 1, 2, 3, 4, 5, 6]) as usize {
        5 => Order::Shuffled(late),
        6 => Order::Kept,
        class => Order::Late(classes[class], late),
    };
    let answer = [Answer::Known, Answer::Known, Answer::Always, Answer::Never][pick(&[0, 1, 2, 3]) as usize];
    let setup = Setup {
        near: Some(Config { answer, ..Config::default() }),
        rate: Rate::from_bps(pick(&[8, 20, 50]) * 1_000_000),
        delay: Duration::from_millis(pick(&[100, 150, 200, 300])),
        longest_segment: pick(&[1460, 4000, 10_000, 30_000]) as u16,
        order,
        seed,
        ..Setup::default()
    };
    let at_once = pick(&[1, 10, 40, 100]) as usize;
    let load = Load {
        rounds: 100_usize.div_ceil(at_once).min(10),
        at_once,
        spread: Duration::from_millis(pick(&[0, 20, 300])),
        thinks: Duration::from_millis(pick(&[0, 0, 10, 400, 2000])),
        is_busy: pick(&[0, 1, 1]) == 1,
    };
    (setup, load, if answer == Answer::Never { 2 } else { 1 })
}

/// 5,000 fetches over links, orders, proxies and loads of all kinds.
#[test]
fn no_fetch_of_thousands_waits_for_a_timer() {
    let mut count = 0;
    for seed in 1.. {
        let (setup, load, round_trips) = any_load(seed);
        count += expect_none_late(&format!("seed {seed}"), &setup, &load, round_trips);
        if count >= 5000 {
            break;
        }
    }
}
