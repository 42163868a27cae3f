//! One end of a tunnel between two gateways. A [`Hub`](crate::Hub) drives it; all others look at it and tell it what a person has decided.
//!
//! Drain order: after packets and datagrams have gone in, take `poll_packet` until there are none; send what `decide` has chosen and say
//! what became of it, until there is nothing; take `poll_event`; read `next_due` again. Nothing breaks if the hub looks later than
//! that: what is due waits.

mod absence;
mod inbound;
mod line;
mod line_following;
mod outbound;
mod path_following;
mod rest;
mod status;

use std::collections::VecDeque;

use base::{Duration, Instant, Packet, Rate, Rng};
use link::queue::Site;
use link::{Edge, Endpoint, IngressQueues, LineId, Treatment};

use crate::allowance::Allowance;
use crate::config::Config;
use crate::congestion::Congestion;
use crate::counters::{Counter, Reasons};
use crate::due::Due;
use crate::ingress::Ingress;
use crate::path::{Address, Path};
use crate::proxy_side::{self, Delivery, ProxySide};
use crate::random::Random;
use crate::session::{Ends, Indices, Peer, Session};
use crate::survey::Survey;
use crate::survey::rate::Finding;
use line::Lines;
use outbound::Chosen;

pub use line::Line;
pub use outbound::{Sent, Transmit};
pub use status::Status;

/// One end of a tunnel.
#[derive(Debug)]
pub struct Tunnel {
    config: Config,
    session: Session,
    /// Seeds of what need not be secret.
    rng: Rng,
    endpoint: Box<dyn Endpoint>,
    ingress: Ingress,
    proxy_side: ProxySide,
    lines: Lines,
    /// Congestion on the way here that packets are still to tell of.
    congestion: Congestion,
    /// Whether datagrams that come late are dropped, because the protocol infers losses from order.
    needs_order: bool,
    /// The longest frame, and the rate and round trip, that queue and endpoint were last made for.
    frame_limit: usize,
    line: (Option<Rate>, Option<Duration>),
    /// A datagram that is no frame and leaves by itself.
    control: Option<((Path, LineId), Vec<u8>)>,
    /// Nothing but the session has to be looked at before, unless it is `None`.
    rests_until: Option<Due>,
    /// What the caller was given last and has not told the end of, and over which line.
    chosen: (Chosen, LineId),
    /// Packets for the LAN that the endpoint has completed.
    lan: VecDeque<Delivery>,
    events: VecDeque<Event>,
    silence: Silence,
    /// Since when the peer is heard and where, as it was told.
    connection: Option<(Instant, Address)>,
    /// ICMP messages while the peer is away.
    messages: Allowance,
    /// Frames that the peer had acknowledged when it was last heard.
    acknowledged: u64,
    traffic: Traffic,
    rejected: Reasons,
    discarded: Reasons,
}

/// What whoever runs a tunnel should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The gateway at this address is heard that was not before, was elsewhere, or has restarted. New keys alone are no event.
    Established {
        /// Where the peer is.
        peer: Address,
        /// Whether it lost its state since the last session, so that the link starts afresh.
        restarted: bool,
    },
    /// The peer is not heard any more.
    Silent {
        /// Where it was.
        peer: Option<Address>,
        /// For so long.
        silence: Duration,
    },
    /// The peer has said that it ends.
    Left {
        /// Where it was.
        peer: Option<Address>,
    },
    /// Nobody answers.
    Unanswered {
        /// Who is called.
        peer: Option<Address>,
        /// For so long.
        silence: Duration,
    },
    /// The peer calls, and takes up no answer.
    Unheeded,
    /// Something about the path's rate; of several, which.
    Rate {
        /// The path.
        line: Option<LineId>,
        /// What was found.
        finding: Finding,
    },
    /// The path carries packets of this many bytes, headers included, other than before.
    PathMtu {
        /// Of several, which.
        line: Option<LineId>,
        /// The longest that it carries.
        size: usize,
    },
    /// The peer is heard over one of several paths, or not any more while it is over another.
    Line {
        /// The path.
        line: LineId,
        /// Whether it is heard.
        is_open: bool,
    },
    /// The protocol's window is too small for the link.
    Edge(Edge),
}

impl Event {
    /// Which of several paths it is about, if it is about one.
    #[must_use]
    pub const fn line(&self) -> Option<LineId> {
        match self {
            Self::Rate { line, .. } | Self::PathMtu { line, .. } => *line,
            Self::Line { line, .. } => Some(*line),
            _ => None,
        }
    }
}

/// Whether a peer is there, by what was heard of it: keys may outlast it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It was never heard.
    Never,
    /// It is heard.
    Connected {
        /// Since then.
        since: Instant,
    },
    /// It was heard.
    Silent {
        /// Then for the last time.
        since: Instant,
    },
}

/// Events that wait, at most; the oldest go.
const EVENTS_LIMIT: usize = 64;

/// Since when nobody has answered, and after how much silence that is told.
#[derive(Clone, Copy, Debug)]
struct Silence {
    since: Instant,
    told: Duration,
}

impl Silence {
    /// Silence that is told at first; then when it has become four times as long.
    const FIRST: Duration = Duration::from_secs(30);

    const fn from(since: Instant) -> Self {
        Self { since, told: Self::FIRST }
    }
}

/// What passed, and what did not.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
struct Traffic {
    /// Packets for the LAN that were marked for congestion on the way here.
    ecn_marked: Counter,
    datagrams_sent: Counter,
    /// With all headers.
    bytes_sent: Counter,
    fillers_sent: Counter,
    /// No route, or longer than the device carries.
    datagrams_refused: Counter,
    datagrams_received: Counter,
    /// With all headers.
    bytes_received: Counter,
    /// Overtaken on the way, where the protocol needs order.
    datagrams_dropped_late: Counter,
    /// From the LAN while the peer is not heard; their senders were told.
    packets_turned_away: Counter,
}

impl Tunnel {
    /// One end, with an endpoint whose frames fit the carrier ([`frame_limit`](crate::config::CarrierLimits::frame_limit)). A `peer` with
    /// an address makes it the one that calls.
    #[must_use]
    pub(crate) fn new(
        config: Config,
        endpoint: Box<dyn Endpoint>,
        ends: Ends,
        peer: Peer,
        indices: (Indices, u32),
        mut random: Random,
    ) -> Self {
        let mut rng = Rng::named(random.seed(), "tunnel");
        let link = config.link;
        let capabilities = endpoint.capabilities();
        let lines = Lines::new(Line::new(&config, config.first_way()));
        let rate = lines.first.found().0;
        let site = Site { rate, seed: rng.bits(), name: "link" };
        let queue = link.queue(rate, None, config.mtu);
        let mut queues = IngressQueues::new(&queue, &site, link.by_dscp(), capabilities);
        if link.sparse_flows {
            queues = queues.with_sparse_flows(&queue, &site);
        }
        let mut ingress = Ingress::new(queues);
        ingress.proxy = proxy_side::proxy(&config, &mut rng);
        let mut session =
            Session::new(ends, peer, &link.protocol.agreement(), config.timing(), indices, random);
        if capabilities.several_lines {
            let others = config.ways.get(1..).unwrap_or_default();
            session = session.with_lines(&others.iter().map(|way| way.address).collect::<Vec<_>>());
        }
        let mut tunnel = Self {
            session,
            proxy_side: ProxySide::new(&config, rate, ingress.proxy.as_deref_mut()),
            rng,
            endpoint,
            ingress,
            congestion: Congestion::default(),
            needs_order: capabilities.needs_order,
            frame_limit: lines.first.frame_limit,
            line: (rate, None),
            lines,
            control: None,
            rests_until: None,
            chosen: (Chosen::Nothing, LineId::FIRST),
            lan: VecDeque::new(),
            events: VecDeque::new(),
            silence: Silence::from(Instant::ZERO),
            connection: None,
            messages: absence::MESSAGES,
            acknowledged: 0,
            traffic: Traffic::default(),
            rejected: Reasons::default(),
            discarded: Reasons::default(),
            config,
        };
        tunnel.add_lines();
        tunnel.set_datagram_age(&queue);
        tunnel
    }

    /// What it was told, with what has been changed since.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The session with the peer.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Whether the peer is there.
    #[must_use]
    pub fn presence(&self, now: Instant) -> Presence {
        match (self.session.last_heard(), self.connection) {
            (None, _) => Presence::Never,
            (Some(heard), connection) if self.session.is_heard(now) => {
                Presence::Connected { since: connection.map_or(heard, |(since, _)| since) }
            }
            (Some(heard), _) => Presence::Silent { since: heard },
        }
    }

    /// What is known of the path, which is the first of several.
    #[must_use]
    pub const fn survey(&self) -> &Survey {
        &self.lines.first.survey
    }

    /// The end of the link.
    #[must_use]
    pub fn endpoint(&self) -> &dyn Endpoint {
        &*self.endpoint
    }

    /// The queues in front of it, and the proxy.
    #[must_use]
    pub const fn ingress(&self) -> &Ingress {
        &self.ingress
    }

    /// The rate that datagrams leave at over all lines, headers included; `None` is as fast as the carrier takes them.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.lines.sum(Line::rate)
    }

    /// Bytes of the largest super-segment that may come from the LAN; `None` if packets are to come one by one.
    #[must_use]
    pub fn super_segment(&self) -> Option<u32> {
        self.config.super_segment(self.line.0)
    }

    /// Has handshakes begin at `address` from now on.
    pub fn call_at(&mut self, now: Instant, address: Address) {
        self.stir();
        if self.session.called() != Some(address) {
            self.session.call_at(address);
            // Nobody has been called there yet.
            self.silence = Silence::from(now);
        }
    }

    /// Whether packets from the LAN are wanted: always where there is a rate, since the queue drops what is too much; else only while there
    /// is room, so that the kernel's queue holds the rest.
    #[must_use]
    pub fn wants_packets(&self) -> bool {
        self.is_limited() || (self.ingress.queues.is_empty() && !self.is_blocked())
    }

    /// Takes a packet from the LAN, perhaps a super-segment behind its metadata.
    pub(crate) fn handle_packet(&mut self, now: Instant, packet: Packet) {
        self.stir();
        if self.turns_away(now, &packet) {
            return;
        }
        self.ingress.accept(now, packet, &*self.endpoint, &mut ());
        if self.is_limited() {
            self.ingress.feed(now, &mut *self.endpoint, &mut ());
        }
    }

    /// Bytes of memory that packets and connections take, as allocated: those that wait, those that are under way, and what has come and cannot go up.
    #[must_use]
    pub fn memory(&self) -> usize {
        let parts = self.lines.all().map(|(_, line)| line.parts.memory()).sum::<usize>();
        self.ingress.memory() + self.endpoint.memory() + parts
    }

    /// Whether nothing waits and the link takes a packet: then one may come whatever the tunnel holds, so that it always gets on.
    pub(crate) fn is_clear(&self) -> bool {
        self.ingress.queues.is_empty() && self.endpoint.has_room(Treatment::Reliable)
    }

    /// Proxy and link may take so many bytes from now on, half each, within their own limits: of its half the link may have as much under way, and as
    /// much that has come.
    pub(crate) fn limit_memory(&mut self, bytes: usize) {
        self.stir();
        self.endpoint.limit_memory(bytes / 2);
        if let Some(proxy) = &mut self.ingress.proxy {
            proxy.limit_memory(bytes / 2);
        }
    }

    /// This end ends: the peer is told, and so are the hosts whose connections break with that. How many these are.
    pub(crate) fn close(&mut self, now: Instant) -> usize {
        self.stir();
        self.session.say_farewell();
        self.ingress.proxy.as_mut().map_or(0, |proxy| proxy.on_peer_lost(now))
    }

    /// What there is to tell.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Lets happen what is due by `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
        self.take_session_events(now);
        if !self.is_at_rest(now) {
            self.stir();
            self.handle_link_timeout(now);
        }
        self.follow_lines(now);
        self.watch_silence(now);
    }

    fn handle_link_timeout(&mut self, now: Instant) {
        if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.endpoint.handle_timeout(now);
            self.deliver(now);
        }
        if let Some(proxy) = &mut self.ingress.proxy
            && proxy.poll_timeout().is_some_and(|due| due <= now)
        {
            proxy.handle_timeout(now);
        }
    }

    /// Tells, once in a while, that nobody answers.
    fn watch_silence(&mut self, now: Instant) {
        if self.session.is_heard(now) {
            self.silence = Silence::from(now);
            // It may be heard again, or elsewhere, under the same keys.
            let event = self.session.peer().and_then(|peer| self.connect(now, peer, false));
            event.into_iter().for_each(|event| self.tell(event));
        } else if self.connection.take().is_some() {
            let silence = now.saturating_since(self.session.last_heard().unwrap_or(now));
            self.tell(Event::Silent { peer: self.session.peer(), silence });
        }
        let silence = now.saturating_since(self.silence.since);
        if let Some(proxy) = &mut self.ingress.proxy {
            self.proxy_side.note_silence(now, silence, proxy);
        }
        if silence >= self.silence.told {
            self.silence.told = self.silence.told.saturating_mul(4);
            let peer = self.session.called();
            if peer.is_some() {
                self.tell(Event::Unanswered { peer, silence });
            }
        }
    }

    /// Bytes of the line that what was chosen last occupies.
    pub(crate) fn chosen_on_line(&self) -> usize {
        let datagrams = self.chosen().map(|chosen| chosen.bytes.chunks(chosen.segment));
        let line = self.chosen.1;
        datagrams.into_iter().flatten().map(|datagram| self.on_line(line, datagram.len())).sum()
    }

    /// Whether any of the lines in use has a rate.
    fn is_limited(&self) -> bool {
        self.lines.open().any(|line| line.pacer.is_limited())
    }

    fn tell(&mut self, event: Event) {
        if self.events.len() == EVENTS_LIMIT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Bytes of a line that a datagram of `len` bytes occupies.
    fn on_line(&self, line: LineId, len: usize) -> usize {
        self.config.link.overhead.on_line(len + self.lines[line].way.carrier.header_len)
    }
}
