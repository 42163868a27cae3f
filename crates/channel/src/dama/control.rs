//! The network control centre: it hears requests and makes the burst time plan of each superframe.
//!
//! A plan is made early enough that the terminals have it when its superframe starts: one satellite hop and the time for processing before.
//! It goes by the requests that have been heard by then.
//!
//! Capacity is counted, not positioned: terminals have carriers of their own, and together they get as many slots as there are.

use std::collections::{BTreeMap, VecDeque};

use base::{Duration, Instant, Rate};

use super::slots::Slots;

/// A terminal, by its number in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TerminalId(usize);

/// What a terminal is entitled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Its carrier.
    pub slots: Slots,
    /// Constant rate assignment: what it gets in any case.
    pub cra: Rate,
    /// The ceiling of its rate requests.
    pub rbdc_ceiling: Rate,
    /// For how many superframes a rate request is effective, from when it is heard; 0: until the next one.
    pub rbdc_timeout: u32,
    /// From the terminal to the control centre, and back.
    pub delay: Duration,
}

/// What a terminal asks for in one opportunity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Slots a superframe, instead of what was asked before; `None` leaves that.
    pub rate: Option<u32>,
    /// Slots, on top of what was asked before.
    pub volume: u32,
}

/// Slots of a superframe that a terminal may use, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Constant rate.
    pub cra: u32,
    /// By rate requests.
    pub rbdc: u32,
    /// By volume requests.
    pub vbdc: u32,
}

impl Grant {
    /// All of them.
    #[must_use]
    pub const fn total(self) -> u32 {
        self.cra + self.rbdc + self.vbdc
    }
}

/// The control centre of a network.
#[derive(Debug)]
pub struct Control {
    capacity: Slots,
    processing: Duration,
    terminals: Vec<Account>,
    /// Requests on their way, by when they are heard and a number.
    inbox: BTreeMap<(Instant, u64), (TerminalId, Request)>,
    requests: u64,
    /// Volume requests in the order in which they were heard.
    volumes: VecDeque<(TerminalId, u32)>,
    /// The superframe of the last plan.
    planned: Option<u64>,
}

#[derive(Debug)]
struct Account {
    subscription: Subscription,
    /// The rate request that is effective, and until when it is.
    rate: Option<(u32, Instant)>,
    /// Slots of constant rate that superframes had no room for, because others were rounded up in the same one.
    owed: u32,
    grant: Grant,
}

impl Control {
    /// A control centre that shares the slots of `capacity`, and takes so long to make a plan.
    #[must_use]
    pub const fn new(capacity: Slots, processing: Duration) -> Self {
        Self {
            capacity,
            processing,
            terminals: Vec::new(),
            inbox: BTreeMap::new(),
            requests: 0,
            volumes: VecDeque::new(),
            planned: None,
        }
    }

    /// A further terminal, before the first plan.
    pub fn join(&mut self, subscription: Subscription) -> TerminalId {
        self.terminals.push(Account { subscription, rate: None, owed: 0, grant: Grant::default() });
        TerminalId(self.terminals.len() - 1)
    }

    /// How long before a superframe its plan is made.
    #[must_use]
    pub fn lead(&self) -> Duration {
        let hop = self.terminals.iter().map(|account| account.subscription.delay).max();
        hop.unwrap_or(Duration::ZERO).saturating_add(self.processing)
    }

    /// A terminal sends a request at `now`.
    pub fn request(&mut self, now: Instant, from: TerminalId, request: Request) {
        let heard_at = now.saturating_add(self.terminals[from.0].subscription.delay);
        self.requests += 1;
        self.inbox.insert((heard_at, self.requests), (from, request));
    }

    /// What a terminal may use of a superframe, which has started; superframes are asked for in their order.
    pub fn grant(&mut self, superframe: u64, terminal: TerminalId) -> Grant {
        if self.planned.is_none_or(|planned| planned < superframe) {
            // Plans that nobody asked about have had nobody to serve, but for rates that were in effect and are not used any more.
            self.plan(superframe);
            self.planned = Some(superframe);
        }
        debug_assert_eq!(self.planned, Some(superframe), "superframes in their order");
        self.terminals[terminal.0].grant
    }

    fn plan(&mut self, superframe: u64) {
        let made_at = self.capacity.start_of(superframe).saturating_sub(self.lead());
        self.hear_until(made_at);
        let mut left = self.capacity.count(superframe);
        for account in &mut self.terminals {
            let due = account.slots_at(account.subscription.cra, superframe) + account.owed;
            let carrier = account.subscription.slots.count(superframe);
            let cra = due.min(carrier).min(left);
            // No more than a superframe's, should constant rates ever be more than there is.
            account.owed = (due - cra).min(carrier);
            account.grant = Grant { cra, ..Grant::default() };
            left -= cra;
        }
        left -= self.plan_rates(superframe, made_at, left);
        self.plan_volumes(superframe, left);
    }

    fn hear_until(&mut self, time: Instant) {
        while let Some(first) = self.inbox.first_entry()
            && first.key().0 <= time
        {
            let ((heard_at, _), (from, Request { rate, volume })) = first.remove_entry();
            let account = &mut self.terminals[from.0];
            if let Some(rate) = rate {
                let timeout = match account.subscription.rbdc_timeout {
                    0 => Duration::MAX,
                    superframes => self.capacity.superframe().saturating_mul(superframes.into()),
                };
                account.rate = Some((rate, heard_at.saturating_add(timeout)));
            }
            if volume > 0 {
                self.volumes.push_back((from, volume));
            }
        }
    }

    /// Grants the rates that are in effect; where they are too many, in proportion. How many slots that takes.
    fn plan_rates(&mut self, superframe: u64, now: Instant, left: u32) -> u32 {
        let wanted: Vec<u32> =
            self.terminals.iter().map(|account| account.rate_at(superframe, now)).collect();
        let all: u64 = wanted.iter().copied().map(u64::from).sum();
        if all <= u64::from(left) {
            self.terminals.iter_mut().zip(&wanted).for_each(|(account, &slots)| account.grant.rbdc = slots);
            return all as u32;
        }
        let mut taken = 0;
        for (account, &slots) in self.terminals.iter_mut().zip(&wanted) {
            account.grant.rbdc = (u64::from(slots) * u64::from(left) / all) as u32;
            taken += account.grant.rbdc;
        }
        // What rounding leaves goes round, beginning with another terminal each time.
        let count = self.terminals.len();
        for turn in 0..count {
            let at = (superframe as usize + turn) % count;
            if taken < left && self.terminals[at].grant.rbdc < wanted[at] {
                self.terminals[at].grant.rbdc += 1;
                taken += 1;
            }
        }
        taken
    }

    /// Serves the volume requests in their order; a terminal whose carrier is full waits and lets others pass.
    fn plan_volumes(&mut self, superframe: u64, mut left: u32) {
        for _ in 0..self.volumes.len() {
            let Some((from, slots)) = self.volumes.pop_front() else { return };
            let account = &mut self.terminals[from.0];
            let room = account.subscription.slots.count(superframe) - account.grant.total();
            let served = slots.min(room).min(left);
            account.grant.vbdc += served;
            left -= served;
            if slots > served {
                // All that remain have been in the queue before, so that the order stays.
                self.volumes.push_back((from, slots - served));
            }
        }
    }
}

impl Account {
    /// Slots of a superframe at a rate that is not above the carrier's.
    fn slots_at(&self, rate: Rate, superframe: u64) -> u32 {
        let slots = self.subscription.slots;
        slots.at_rate(rate).count(superframe).min(slots.count(superframe))
    }

    /// Slots of a superframe by the rate request that is in effect.
    fn rate_at(&self, superframe: u64, now: Instant) -> u32 {
        let asked = self.rate.filter(|(_, until)| now < *until).map_or(0, |(slots, _)| slots);
        let ceiling = self.slots_at(self.subscription.rbdc_ceiling, superframe);
        let room = self.subscription.slots.count(superframe) - self.grant.cra;
        asked.min(ceiling).min(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUPERFRAME: Duration = Duration::from_millis(250);
    const HOP: Duration = Duration::from_millis(250);

    fn slots(kbps: u64) -> Slots {
        // 25 slots a superframe at 100 kbit/s.
        Slots::new(Rate::from_bps(kbps * 1000), 1000, SUPERFRAME)
    }

    fn terminal(cra: u64, rbdc: u64) -> Subscription {
        Subscription {
            slots: slots(100),
            cra: Rate::from_bps(cra * 1000),
            rbdc_ceiling: Rate::from_bps(rbdc * 1000),
            rbdc_timeout: 4,
            delay: HOP,
        }
    }

    fn at(superframe: u64) -> Instant {
        slots(100).start_of(superframe)
    }

    fn control(kbps: u64, processing: Duration) -> Control {
        Control::new(slots(kbps), processing)
    }

    fn grants(control: &mut Control, superframe: u64, terminals: &[TerminalId]) -> Vec<(u32, u32, u32)> {
        let grant = |&id| control.grant(superframe, id);
        terminals.iter().map(grant).map(|grant| (grant.cra, grant.rbdc, grant.vbdc)).collect()
    }

    /// Eight rates of 3.125 slots a superframe are all rounded up in the same one, to more than there are.
    #[test]
    fn constant_rates_are_kept_whatever_they_are_rounded_to() {
        let mut control = control(100, SUPERFRAME);
        let all: Vec<TerminalId> = (0..8)
            .map(|_| control.join(Subscription { cra: Rate::from_bps(12_500), ..terminal(0, 0) }))
            .collect();
        let mut sums = vec![0; all.len()];
        for superframe in 0..800 {
            let granted = grants(&mut control, superframe, &all);
            assert!(granted.iter().map(|grant| grant.0).sum::<u32>() <= 25);
            sums.iter_mut().zip(granted).for_each(|(sum, grant)| *sum += grant.0);
        }
        assert!(sums.iter().all(|sum| (2499..=2501).contains(sum)), "{sums:?}");
    }

    #[test]
    fn constant_rate_needs_no_request() {
        let mut control = control(100, SUPERFRAME);
        let all = [control.join(terminal(40, 0)), control.join(terminal(60, 0))];
        assert_eq!(grants(&mut control, 0, &all), [(10, 0, 0), (15, 0, 0)]);
    }

    /// Up, planned, and down: with a hop of one superframe and processing of another, three superframes later.
    #[test]
    fn a_request_is_served_after_two_hops_and_processing() {
        for (processing, first) in [(Duration::ZERO, 2), (SUPERFRAME, 3)] {
            let mut control = control(100, processing);
            let one = control.join(terminal(0, 100));
            control.request(at(0), one, Request { rate: None, volume: 7 });
            let vbdc: Vec<_> = (1..5).map(|superframe| control.grant(superframe, one).vbdc).collect();
            assert_eq!(vbdc.iter().position(|slots| *slots == 7), Some(first - 1), "{vbdc:?}");
            assert_eq!(vbdc.iter().sum::<u32>(), 7);
        }
    }

    #[test]
    fn a_rate_lasts_until_it_is_updated_or_times_out() {
        let mut control = control(100, Duration::ZERO);
        let one = control.join(terminal(0, 60));
        control.request(at(0), one, Request { rate: Some(20), volume: 0 });
        let rbdc: Vec<_> = (1..8).map(|superframe| control.grant(superframe, one).rbdc).collect();
        // Heard at the end of superframe 0; effective for four superframes' plans; the ceiling is 15 slots.
        assert_eq!(rbdc, [0, 15, 15, 15, 15, 0, 0]);
        control.request(at(8), one, Request { rate: Some(9), volume: 0 });
        control.request(at(9), one, Request { rate: Some(3), volume: 0 });
        let rbdc: Vec<_> = (10..17).map(|superframe| control.grant(superframe, one).rbdc).collect();
        assert_eq!(rbdc, [9, 3, 3, 3, 3, 0, 0]);
    }

    #[test]
    fn rates_beyond_the_capacity_are_cut_in_proportion() {
        let mut control = control(100, Duration::ZERO);
        let all =
            [control.join(terminal(0, 100)), control.join(terminal(0, 100)), control.join(terminal(20, 0))];
        control.request(at(0), all[0], Request { rate: Some(25), volume: 0 });
        control.request(at(0), all[1], Request { rate: Some(12), volume: 0 });
        // 20 slots are left: 25/37 and 12/37 of them are 13.5 and 6.5. The odd one goes round.
        assert_eq!(grants(&mut control, 2, &all), [(0, 14, 0), (0, 6, 0), (5, 0, 0)]);
        assert_eq!(grants(&mut control, 3, &all), [(0, 14, 0), (0, 6, 0), (5, 0, 0)]);
        assert_eq!(grants(&mut control, 4, &all), [(0, 13, 0), (0, 7, 0), (5, 0, 0)]);
    }

    #[test]
    fn volumes_get_what_rates_leave_in_the_order_of_requests() {
        let mut control = control(100, Duration::ZERO);
        let all = [control.join(terminal(0, 100)), control.join(terminal(0, 0))];
        control.request(at(0), all[0], Request { rate: Some(10), volume: 12 });
        control.request(at(0), all[1], Request { rate: None, volume: 20 });
        control.request(at(1), all[0], Request { rate: Some(0), volume: 2 });
        assert_eq!(grants(&mut control, 2, &all), [(0, 10, 12), (0, 0, 3)]);
        assert_eq!(grants(&mut control, 3, &all), [(0, 0, 2), (0, 0, 17)]);
        assert_eq!(grants(&mut control, 4, &all), [(0, 0, 0), (0, 0, 0)]);
    }

    /// A terminal cannot use more than its carrier; others pass it meanwhile.
    #[test]
    fn a_carrier_is_never_overbooked() {
        let mut control = control(200, Duration::ZERO);
        let all = [control.join(terminal(20, 0)), control.join(terminal(0, 0))];
        control.request(at(0), all[0], Request { rate: None, volume: 45 });
        control.request(at(0), all[1], Request { rate: None, volume: 6 });
        assert_eq!(grants(&mut control, 2, &all), [(5, 0, 20), (0, 0, 6)]);
        assert_eq!(grants(&mut control, 3, &all), [(5, 0, 20), (0, 0, 0)]);
        assert_eq!(grants(&mut control, 4, &all), [(5, 0, 5), (0, 0, 0)]);
    }

    #[test]
    fn a_rate_has_what_constant_rate_leaves_of_the_carrier() {
        let mut control = control(200, Duration::ZERO);
        let all = [control.join(terminal(60, 100))];
        control.request(at(0), all[0], Request { rate: Some(25), volume: 0 });
        assert_eq!(grants(&mut control, 2, &all), [(15, 10, 0)]);
    }

    /// What the superframes grant is what was asked for, whatever is asked when and however many terminals there are.
    #[test]
    fn every_slot_asked_for_is_granted_once() {
        use proptest::prelude::*;
        let requests = prop::collection::vec((0_u64..20, 0_usize..3, 0_u32..40), 0..60);
        proptest!(|(requests in requests, kbps in 10_u64..300)| {
            let mut control = control(kbps, SUPERFRAME);
            let all: Vec<_> = (0..3).map(|_| control.join(terminal(0, 0))).collect();
            let (mut asked, mut granted) = ([0; 3], [0; 3]);
            for superframe in 0..1500 {
                let mut sum = 0;
                for (idx, id) in all.iter().enumerate() {
                    let slots = control.grant(superframe, *id).vbdc;
                    prop_assert!(slots <= 25);
                    granted[idx] += slots;
                    sum += slots;
                }
                prop_assert!(sum <= slots(kbps).count(superframe));
                for (_, idx, volume) in requests.iter().filter(|(when, ..)| *when == superframe) {
                    control.request(at(superframe), all[*idx], Request { rate: None, volume: *volume });
                    asked[*idx] += volume;
                }
            }
            prop_assert_eq!(asked, granted);
            prop_assert!(control.volumes.is_empty());
        });
    }
}
