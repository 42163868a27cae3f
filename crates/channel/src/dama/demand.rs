//! What a terminal asks for at each opportunity.

use super::control::Request;
use super::{Config, RateRequest};

/// A terminal's requests so far, and what came since.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    by_rate: bool,
    rate_request: RateRequest,
    /// Superframes for which a rate request is effective; 0: without end.
    timeout: u32,
    by_volume: bool,
    /// Payload bytes of a slot.
    cell_payload: u64,
    /// Bytes that came since the last opportunity.
    arrived: u64,
    /// Slots that were asked for by volume and have not been granted.
    owed: u32,
    /// The rate asked for last, and in which superframe that was.
    rate: Option<(u32, u64)>,
}

/// What an opportunity finds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opportunity {
    /// The superframe that it opens.
    pub(super) superframe: u64,
    /// Bytes in the MAC buffer that have no slot.
    pub(super) waiting: u64,
    /// Slots that will be granted without asking until a plan can heed this request.
    pub(super) coming: u64,
}

impl Demand {
    pub(super) const fn new(config: &Config, cell_payload: u64) -> Self {
        Self {
            by_rate: config.rbdc.as_bps() > 0,
            rate_request: config.rbdc_request,
            timeout: config.rbdc_timeout.get(),
            by_volume: config.vbdc,
            cell_payload,
            arrived: 0,
            owed: 0,
            rate: None,
        }
    }

    /// Bytes came into the buffer.
    pub(super) const fn on_arrival(&mut self, bytes: u64) {
        self.arrived += bytes;
    }

    /// Slots were granted by volume.
    pub(super) const fn on_grant(&mut self, slots: u32) {
        self.owed = self.owed.saturating_sub(slots);
    }

    /// Whether something that was asked for is still to come or to end.
    pub(super) const fn is_open(&self) -> bool {
        self.owed > 0 || self.rate.is_some()
    }

    /// Slots a superframe by the last request for a rate, as of the last opportunity.
    pub(super) fn rate_in_effect(&self) -> u32 {
        self.rate.map_or(0, |(rate, _)| rate)
    }

    /// A superframe began without an opportunity being used: what came so far is for no later rate request.
    pub(super) const fn skip(&mut self) {
        self.arrived = 0;
    }

    /// What to ask for now, if anything.
    pub(super) fn request(&mut self, now: Opportunity) -> Option<Request> {
        let request = Request {
            rate: if self.by_rate { self.rate(now) } else { None },
            volume: if self.by_volume { self.volume(now) } else { 0 },
        };
        self.arrived = 0;
        self.owed += request.volume;
        (request != Request::default()).then_some(request)
    }

    fn rate(&mut self, now: Opportunity) -> Option<u32> {
        self.rate.take_if(|(rate, asked_in)| {
            let lasts = self.timeout == 0 || now.superframe - *asked_in < u64::from(self.timeout);
            *rate == 0 || !lasts
        });
        let wanted = match self.rate_request {
            RateRequest::Arrivals if self.arrived > 0 => Some(self.slots_for(self.arrived)),
            RateRequest::Arrivals if now.waiting > 0 && self.rate.is_none() => {
                Some(self.slots_for(now.waiting))
            }
            RateRequest::Backlog if now.waiting > 0 => {
                Some(self.slots_for(now.waiting).div_ceil(self.timeout.max(1)))
            }
            RateRequest::Arrivals | RateRequest::Backlog => None,
        };
        if wanted.is_none() && self.timeout == 0 && self.rate.is_some() {
            // A request without an end has to be ended.
            self.rate = None;
            return Some(0);
        }
        self.rate = wanted.map(|rate| (rate, now.superframe)).or(self.rate);
        wanted
    }

    /// What waits and is neither owed already nor carried by what comes without asking.
    fn volume(&self, now: Opportunity) -> u32 {
        u64::from(self.slots_for(now.waiting)).saturating_sub(u64::from(self.owed) + now.coming) as u32
    }

    fn slots_for(&self, bytes: u64) -> u32 {
        bytes.div_ceil(self.cell_payload) as u32
    }
}

#[cfg(test)]
mod tests {
    use base::Rate;

    use super::*;

    fn demand(change: impl FnOnce(&mut Config)) -> Demand {
        let mut config = Config::default();
        change(&mut config);
        Demand::new(&config, 48)
    }

    fn by_rate(request: RateRequest, timeout: u32) -> Demand {
        demand(|config| {
            config.rbdc = Rate::from_bps(128_000);
            config.rbdc_request = request;
            config.rbdc_timeout = timeout.try_into().expect("a time-out");
        })
    }

    /// The rate asked for in a superframe in which so much came and so much waits.
    fn rate(demand: &mut Demand, superframe: u64, arrived: u64, waiting: u64) -> Option<u32> {
        demand.on_arrival(arrived);
        demand.request(Opportunity { superframe, waiting, coming: 0 }).and_then(|request| request.rate)
    }

    fn volume(demand: &mut Demand, waiting: u64, coming: u64) -> u32 {
        let request = demand.request(Opportunity { superframe: 0, waiting, coming });
        request.map_or(0, |request| request.volume)
    }

    #[test]
    fn volume_is_asked_for_once() {
        let mut demand = demand(|config| config.vbdc = true);
        assert_eq!(volume(&mut demand, 480, 0), 10);
        assert_eq!(volume(&mut demand, 480, 0), 0);
        assert_eq!(volume(&mut demand, 481, 0), 1);
        demand.on_grant(4);
        assert!(demand.is_open());
        assert_eq!(volume(&mut demand, 481 - 4 * 48, 0), 0);
        demand.on_grant(7);
        assert!(!demand.is_open());
    }

    #[test]
    fn what_comes_without_asking_is_not_asked_for() {
        let mut demand = demand(|config| config.vbdc = true);
        assert_eq!(volume(&mut demand, 480, 7), 3);
    }

    #[test]
    fn the_rate_of_arrivals_stays_until_it_times_out() {
        let mut demand = by_rate(RateRequest::Arrivals, 2);
        assert_eq!(rate(&mut demand, 0, 960, 960), Some(20));
        assert_eq!(rate(&mut demand, 1, 0, 960), None);
        // What is left in one superframe.
        assert_eq!(rate(&mut demand, 2, 0, 480), Some(10));
        assert_eq!(rate(&mut demand, 3, 96, 576), Some(2));
        assert_eq!(rate(&mut demand, 5, 0, 0), None);
        assert!(!demand.is_open());
    }

    /// What came while the terminal slept came over an unknown time.
    #[test]
    fn arrivals_before_a_skipped_opportunity_are_no_rate() {
        let mut demand = by_rate(RateRequest::Arrivals, 2);
        demand.on_arrival(960);
        demand.skip();
        assert_eq!(rate(&mut demand, 1, 96, 1056), Some(2));
    }

    #[test]
    fn the_rate_of_a_backlog_empties_it_while_it_is_effective() {
        let mut demand = by_rate(RateRequest::Backlog, 4);
        assert_eq!(rate(&mut demand, 0, 960, 960), Some(5));
        assert_eq!(rate(&mut demand, 1, 0, 960), Some(5));
        assert_eq!(demand.rate_in_effect(), 5);
        assert_eq!(rate(&mut demand, 2, 0, 49), Some(1));
        assert_eq!(rate(&mut demand, 3, 0, 0), None);
        assert!(demand.is_open());
        assert_eq!(rate(&mut demand, 6, 0, 0), None);
        assert!(!demand.is_open());
        assert_eq!(demand.rate_in_effect(), 0);
    }

    #[test]
    fn a_rate_without_end_is_ended() {
        let mut demand = by_rate(RateRequest::Backlog, 0);
        assert_eq!(rate(&mut demand, 0, 480, 480), Some(10));
        assert_eq!(rate(&mut demand, 100, 0, 48), Some(1));
        assert_eq!(rate(&mut demand, 101, 0, 0), Some(0));
        assert_eq!(rate(&mut demand, 102, 0, 0), None);
    }
}
