//! From the carrier to the TUN device.

use std::io;

use base::Instant;
use link::{Discard, Endpoint};
use pep::Side;

use super::congestion::Congestion;
use super::splitting::{Splitting, write};
use super::{Gateway, TURN, Traffic, pairing};
use crate::session::{Arrival, Event, Kind, Rejection, Session};
use crate::survey::Survey;
use crate::tun::Tun;

impl Gateway {
    /// Lets time-outs of the endpoint happen, and delivers what they release.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let Self { endpoint, congestion, splitting, tun, traffic, .. } = self;
        if endpoint.poll_timeout().is_some_and(|due| due <= now) {
            endpoint.handle_timeout(now);
            deliver(now, endpoint.as_mut(), congestion, splitting, tun, traffic);
        }
        if let Some(splitting) = splitting {
            splitting.handle_timeout(now);
            splitting.flush(now, tun, traffic);
        }
    }

    /// Takes what has arrived, a few batches at most, and delivers what it completes.
    pub(super) fn receive(&mut self, now: Instant) -> io::Result<()> {
        let Self {
            carrier,
            session,
            endpoint,
            splitting,
            tun,
            traffic,
            congestion,
            rejected,
            discarded,
            events,
            complaints,
            survey,
            ..
        } = self;
        let needs_order = self.needs_order;
        for _ in 0..TURN {
            let received = carrier.receive(now, |from, ecn, datagram| {
                let result = session.handle_datagram(now, from, datagram);
                take_events(now, session, endpoint.as_mut(), splitting, survey, events);
                if matches!(result, Ok(Some(_))) {
                    survey.reports.on_received(datagram.len() as u64);
                }
                let arrival = match result {
                    Ok(Some(Arrival { kind: Kind::Control(pairing::KIND), payload, .. })) => {
                        if let Some(splitting) = splitting {
                            splitting.handle_pairing(now, &datagram[payload]);
                        }
                        return;
                    }
                    Ok(Some(Arrival { kind: Kind::Control(kind), payload, .. })) => {
                        if !survey.handle_control(now, kind, &datagram[payload]) {
                            rejected.increment(Rejection::UnknownControl.counter());
                        }
                        return;
                    }
                    Ok(Some(arrival)) if !arrival.payload.is_empty() => arrival,
                    Ok(_) => return,
                    Err(rejection) => {
                        complaints.on_rejection(now, from.peer, rejection);
                        return rejected.increment(rejection.counter());
                    }
                };
                survey.reports.on_traffic();
                if arrival.late && needs_order {
                    return traffic.datagrams_dropped_late.increment();
                }
                let frame = &datagram[arrival.payload];
                match endpoint.handle_frame(now, frame) {
                    Ok(()) => congestion.on_frame(ecn, frame.len()),
                    Err(discard) => discarded.increment(name(discard)),
                }
                deliver(now, endpoint.as_mut(), congestion, splitting, tun, traffic);
            })?;
            if let Some(splitting) = splitting {
                splitting.flush(now, tun, traffic);
            }
            if received == 0 {
                break;
            }
            traffic.datagrams_received.add(received as u64);
        }
        Ok(())
    }
}

/// A peer in a new life knows nothing of what was said: the endpoint forgets it too, before it hears the new one.
fn take_events(
    now: Instant,
    session: &mut Session,
    endpoint: &mut dyn Endpoint,
    splitting: &mut Option<Box<Splitting>>,
    survey: &mut Survey,
    events: &mut Vec<Event>,
) {
    while let Some(event) = session.poll_event() {
        if let Event::Established { restarted } = event {
            survey.on_established(restarted);
            if restarted {
                endpoint.reset();
                if let Some(splitting) = splitting {
                    splitting.on_peer_restarted(now);
                }
            }
        }
        events.push(event);
    }
}

fn deliver(
    now: Instant,
    endpoint: &mut dyn Endpoint,
    congestion: &mut Congestion,
    splitting: &mut Option<Box<Splitting>>,
    tun: &mut Tun,
    traffic: &mut Traffic,
) {
    while let Some(mut packet) = endpoint.poll_packet() {
        let is_marked = congestion.mark(&mut packet);
        let is_split = splitting.as_mut().is_some_and(|it| it.takes(now, Side::Link, &mut packet));
        if !is_split && write(tun, traffic, &packet) {
            traffic.ecn_marked.add(is_marked.into());
        }
    }
}

const fn name(discard: Discard) -> &'static str {
    match discard {
        Discard::Truncated(_) => "truncated",
        Discard::Malformed => "malformed",
        Discard::Duplicate(_) => "duplicate",
        Discard::Late(_) => "late",
        Discard::OutsideWindow(_) => "outside_window",
    }
}
