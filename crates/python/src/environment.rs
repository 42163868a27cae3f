//! A run that waits for decisions: the window of one flow is whatever an agent says, until it says something else.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::Duration;
use lab::bound;
use lab::run::{Running, Watch};
use lab::scenario::{Scenario, Traffic, Transport};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcp::congestion::{self, Cause, Controller, Factory};

use crate::suite::Suite;
use crate::{errors, work};

/// What an agent's connections say, and what they are told.
#[derive(Debug, Default)]
struct Agent {
    /// Bytes; the initial window until the agent decides.
    window: Option<u64>,
    mss: u64,
    initial_window: u64,
    since: Since,
    srtt: Option<Duration>,
    rtt_min: Option<Duration>,
    in_flight: u64,
}

/// What happened since the last decision.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    acks: u64,
    delivered: u64,
    losses: u64,
    marks: u64,
    timeouts: u64,
}

/// The agent of a connection.
#[derive(Debug)]
struct Follower(Arc<Mutex<Agent>>);

fn lock(agent: &Mutex<Agent>) -> MutexGuard<'_, Agent> {
    agent.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Controller for Follower {
    fn on_ack(&mut self, ack: &congestion::AckSample) {
        let mut agent = lock(&self.0);
        agent.since.acks += 1;
        agent.since.delivered += ack.delivered_bytes;
        agent.srtt = ack.srtt.or(agent.srtt);
        if ack.rtt_min != Duration::MAX {
            agent.rtt_min = Some(agent.rtt_min.map_or(ack.rtt_min, |least| least.min(ack.rtt_min)));
        }
        agent.in_flight = ack.in_flight;
    }

    fn on_congestion(&mut self, event: &congestion::Congestion) {
        let since = &mut lock(&self.0).since;
        match event.cause {
            Cause::Loss => since.losses += 1,
            Cause::Ecn => since.marks += 1,
            Cause::Timeout => since.timeouts += 1,
        }
    }

    /// The agent decides, in recovery too.
    fn steers_recovery(&self) -> bool {
        true
    }

    fn window(&self) -> u64 {
        let agent = lock(&self.0);
        agent.window.unwrap_or(agent.initial_window).max(agent.mss)
    }

    fn set_window(&mut self, _window: u64, _ssthresh: Option<u64>) {}
}

/// A run of one scheme in which an agent is the congestion controller of a host.
#[pyclass(unsendable, module = "longhaul._native")]
#[derive(Debug)]
pub(crate) struct Environment {
    scheme: String,
    scenario: Scenario,
    host: String,
    flow: String,
    running: Option<Running<'static>>,
    agent: Arc<Mutex<Agent>>,
    received: u64,
}

#[pymethods]
impl Environment {
    /// For the flow with this name.
    #[new]
    fn new(suite: &Suite, scheme: Option<&str>, flow: &str) -> PyResult<Self> {
        let (scheme, scenario) = suite.scheme(scheme)?.clone();
        let traffic = scenario.traffic.get(flow).ok_or_else(|| {
            let known: Vec<&str> = scenario.traffic.keys().map(String::as_str).collect();
            errors::wrong(format!("no traffic \"{flow}\"; there are {}", known.join(", ")))
        })?;
        let host = traffic.hosts()[0].to_owned();
        let is_one = match traffic {
            Traffic::Bulk(bulk) => bulk.connections == 1,
            Traffic::Rate(source) => source.connections == 1 && source.transport == Transport::Tcp,
            Traffic::Transactions(_) => false,
        };
        if !is_one || scenario.tcp_of(&host).sharing.policy == tcp::Sharing::Stcp {
            return Err(errors::wrong(format!(
                "\"{flow}\" has no single controller to take the place of; allowed are bulk transfers and sources of one TCP connection, \
                 without sharing = \"stcp\""
            )));
        }
        let mut others = scenario.traffic.iter().filter(|(name, _)| *name != flow);
        if let Some((other, _)) = others.find(|(_, other)| other.hosts().contains(&host.as_str())) {
            return Err(errors::wrong(format!(
                "\"{other}\" has an end at \"{host}\" too, whose controller would be the agent's: give \"{flow}\" a sender of its own"
            )));
        }
        let agent = Arc::default();
        Ok(Self { scheme, scenario, host, flow: flow.to_owned(), running: None, agent, received: 0 })
    }

    /// Begins a run with this seed.
    fn reset(&mut self, seed: u64) -> PyResult<()> {
        self.agent = Arc::default();
        let shared = Arc::clone(&self.agent);
        let build = move |start: &congestion::Start| {
            let mut agent = lock(&shared);
            (agent.mss, agent.initial_window) = (start.mss, start.initial_window);
            drop(agent);
            Follower(Arc::clone(&shared))
        };
        let mut scenario = self.scenario.clone();
        let mut tcp = scenario.tcp_of(&self.host).clone();
        tcp.congestion = tcp::Congestion::External(Factory::new("agent", build));
        scenario.host.insert(self.host.clone(), lab::scenario::HostConfig { tcp });
        self.running = None;
        let begin = || Running::begin(&self.scheme, Cow::Owned(scenario), seed, &Watch::default());
        self.running = Some(work::here(|| begin().map_err(|error| errors::io(&error)))?);
        self.received = 0;
        Ok(())
    }

    /// Sets the window in bytes, unless there is none to set, and goes on for so many seconds; whether the run is over.
    fn advance(&mut self, window: Option<u64>, seconds: f64) -> PyResult<bool> {
        let running =
            self.running.as_mut().ok_or_else(|| errors::wrong("no run has begun: call reset first"))?;
        let mut agent = lock(&self.agent);
        agent.since = Since::default();
        agent.window = window.or(agent.window);
        drop(agent);
        self.received = running.received(&self.flow);
        let until = running.now().saturating_add(Duration::from_secs_f64(seconds.clamp(0.0, 1e9)));
        let gone_on = work::here(|| running.until(until).map_err(|error| errors::io(&error)));
        if gone_on.is_err() {
            self.running = None;
        }
        gone_on
    }

    /// What is known now, and what happened since the last decision.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let agent = lock(&self.agent);
        let since = agent.since;
        let running = self.running.as_ref();
        let seconds = |time: Option<Duration>| time.map(Duration::as_secs_f64);
        let state = PyDict::new(py);
        state.set_item("time_s", running.map_or(0.0, |it| it.now().as_secs_f64()))?;
        state.set_item("window_bytes", agent.window.unwrap_or(agent.initial_window))?;
        state.set_item("mss_bytes", agent.mss)?;
        state.set_item("in_flight_bytes", agent.in_flight)?;
        state.set_item("srtt_s", seconds(agent.srtt))?;
        state.set_item("rtt_min_s", seconds(agent.rtt_min))?;
        state.set_item("acks", since.acks)?;
        state.set_item("delivered_bytes", since.delivered)?;
        state.set_item("received_bytes", running.map_or(0, |it| it.received(&self.flow) - self.received))?;
        state.set_item("losses", since.losses)?;
        state.set_item("marks", since.marks)?;
        state.set_item("timeouts", since.timeouts)?;
        Ok(state)
    }

    /// When the run ends at the latest, in seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.scenario.duration.as_secs_f64()
    }

    /// What the channel lets through with this seed, in bits per second, until the traffic has ended if it ends.
    fn bound(&self, seed: u64) -> f64 {
        bound::goodput_bps(&self.scenario, seed, true)
    }
}
