//! Congestion controllers written in Python.

use base::{Instant, Rate};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use tcp::congestion::{self, Cause, Controller, Factory};

use crate::work;

/// What one acknowledgement says: times in seconds, amounts in bytes.
///
/// >>> import longhaul as lh
/// >>> class TwiceDelivered(lh.Controller):
/// ...     version = "1"
/// ...     def on_ack(self, sample: lh.AckSample) -> None:
/// ...         if sample.delivery_rate_bps and sample.rtt_min_s:
/// ...             self.window = max(2 * sample.delivery_rate_bps * sample.rtt_min_s / 8, 10 * self.mss)
/// ...     def on_congestion(self, event: lh.Congestion) -> None:
/// ...         pass
/// >>> demo = lh.Scenario.load("demo/download").select("TCP").set("traffic.download.bulk.size", "50 kB")
/// >>> len(demo.set("tcp.congestion", TwiceDelivered).run(seeds=1).table)
/// 1
///
/// All that a sample says, with its units:
///
/// >>> seen = []
/// >>> class Watching(lh.Controller):
/// ...     version = "1"
/// ...     def on_ack(self, sample: lh.AckSample) -> None:
/// ...         seconds = (sample.now_s, sample.rtt_s, sample.srtt_s, sample.rtt_min_s)
/// ...         new_bytes = (sample.bytes, sample.delivered_bytes, sample.opening_bytes)
/// ...         bytes_out = (sample.prior_in_flight, sample.in_flight)
/// ...         rate = (sample.delivery_rate_bps, sample.app_limited, sample.limited_by_window)
/// ...         seen.append((seconds, new_bytes, bytes_out, rate, sample.round, sample.recovering, sample.duplicate))
/// ...     def on_congestion(self, event: lh.Congestion) -> None:
/// ...         pass
/// >>> runs = demo.set("tcp.congestion", Watching).run(seeds=1)
/// >>> seconds, new_bytes, bytes_out, rate, *_ = seen[0]
/// >>> 0.25 < seconds[3] < 1, bytes_out[0] - bytes_out[1] == new_bytes[1]
/// (True, True)
#[pyclass(frozen, module = "longhaul")]
#[derive(Clone, Debug)]
pub(crate) struct AckSample(congestion::AckSample);

#[pymethods]
impl AckSample {
    /// When it arrived, in seconds of virtual time.
    #[getter]
    fn now_s(&self) -> f64 {
        self.0.now.as_secs_f64()
    }

    /// Bytes newly acknowledged cumulatively.
    #[getter]
    const fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Bytes newly known to have arrived, cumulatively or selectively.
    #[getter]
    const fn delivered_bytes(&self) -> u64 {
        self.0.delivered_bytes
    }

    /// Bytes that may open a window: those newly known to have arrived, where the cumulative acknowledgement moved.
    #[getter]
    const fn opening_bytes(&self) -> u64 {
        self.0.opening_bytes()
    }

    /// Round-trip time of the latest segment that it delivered, in seconds; None if that had been retransmitted.
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        self.0.rtt.map(base::Duration::as_secs_f64)
    }

    /// Smoothed round-trip time in seconds; None before the first sample.
    #[getter]
    fn srtt_s(&self) -> Option<f64> {
        self.0.srtt.map(base::Duration::as_secs_f64)
    }

    /// The connection's least round-trip time in seconds; None before the first sample.
    #[getter]
    fn rtt_min_s(&self) -> Option<f64> {
        (self.0.rtt_min != base::Duration::MAX).then(|| self.0.rtt_min.as_secs_f64())
    }

    /// Bytes in the network after it.
    #[getter]
    const fn in_flight(&self) -> u64 {
        self.0.in_flight
    }

    /// Bytes in the network before it.
    #[getter]
    const fn prior_in_flight(&self) -> u64 {
        self.0.prior_in_flight
    }

    /// Whether the window, and nothing else, kept data back in the last round trip in which data were sent.
    #[getter]
    const fn limited_by_window(&self) -> bool {
        self.0.limited_by_window
    }

    /// The delivery rate in bits per second that the latest delivered segment shows, if it shows one.
    #[getter]
    fn delivery_rate_bps(&self) -> Option<u64> {
        self.0.delivery.map(|delivery| delivery.rate().as_bps())
    }

    /// Whether the application, not the window, limited that delivery.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited()
    }

    /// Round trips so far.
    #[getter]
    const fn round(&self) -> u64 {
        self.0.round
    }

    /// Whether recovery from a loss or a mark is in progress: controllers that are driven by loss hold their window.
    #[getter]
    const fn recovering(&self) -> bool {
        self.0.recovering
    }

    /// Whether it is a duplicate acknowledgement.
    #[getter]
    const fn duplicate(&self) -> bool {
        self.0.duplicate
    }

    /// Whether the sender has used a window of so many bytes, so that there is reason for a larger one.
    ///
    /// >>> import longhaul as lh
    /// >>> class SlowStart(lh.Controller):
    /// ...     version = "1"
    /// ...     def on_ack(self, sample: lh.AckSample) -> None:
    /// ...         if sample.fills(self.window, slow_start=True):
    /// ...             self.window += sample.opening_bytes
    /// ...     def on_congestion(self, event: lh.Congestion) -> None:
    /// ...         self.window = max(event.flight_size / 2, 2 * self.mss)
    /// >>> demo = lh.Scenario.load("demo/download").select("TCP").set("traffic.download.bulk.size", "50 kB")
    /// >>> len(demo.set("tcp.congestion", SlowStart).run(seeds=1).table)
    /// 1
    #[pyo3(signature = (window, slow_start = false))]
    fn fills(&self, window: f64, slow_start: bool) -> bool {
        self.0.fills(window as u64, slow_start)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Congestion, as recovery reports it: times in seconds, amounts in bytes.
///
/// >>> import longhaul as lh
/// >>> class Careful(lh.Controller):
/// ...     version = "1"
/// ...     def on_ack(self, sample: lh.AckSample) -> None:
/// ...         self.window += self.mss * sample.opening_bytes / self.window
/// ...     def on_congestion(self, event: lh.Congestion) -> None:
/// ...         self.window = self.mss if event.cause == "timeout" else event.flight_size / 2
/// ...         self.reduced_s = event.now_s
/// ...         if event.resent:
/// ...             self.window = self.mss
/// >>> demo = lh.Scenario.load("demo/download").select("TCP").set("traffic.download.bulk.size", "50 kB")
/// >>> len(demo.set("tcp.congestion", Careful).run(seeds=1).table)
/// 1
#[pyclass(frozen, module = "longhaul")]
#[derive(Clone, Debug)]
pub(crate) struct Congestion(congestion::Congestion);

#[pymethods]
impl Congestion {
    /// When it was noticed, in seconds of virtual time.
    #[getter]
    fn now_s(&self) -> f64 {
        self.0.now.as_secs_f64()
    }

    /// Bytes sent and not cumulatively acknowledged.
    #[getter]
    const fn flight_size(&self) -> u64 {
        self.0.flight_size
    }

    /// What it is: "loss", "ecn" or "timeout".
    #[getter]
    const fn cause(&self) -> &'static str {
        match self.0.cause {
            Cause::Loss => "loss",
            Cause::Ecn => "ecn",
            Cause::Timeout => "timeout",
        }
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }

    /// Whether the lost segment had been sent more than once.
    #[getter]
    const fn resent(&self) -> bool {
        self.0.resent
    }
}

/// What a controller knows when it begins: times in seconds, amounts in bytes.
///
/// >>> import longhaul as lh
/// >>> class FromFour(lh.Controller):
/// ...     version = "1"
/// ...     def __init__(self, start: lh.Start) -> None:
/// ...         super().__init__(start)
/// ...         self.window = min(4 * start.mss, start.initial_window)
/// ...         self.ssthresh = start.ssthresh
/// ...         self.most_opened = start.byte_counting_limit * start.mss
/// ...         if start.paced and start.srtt_s:
/// ...             self.pacing_rate_bps = 2 * 8 * self.window / start.srtt_s
/// ...     def on_ack(self, sample: lh.AckSample) -> None:
/// ...         pass
/// ...     def on_congestion(self, event: lh.Congestion) -> None:
/// ...         pass
/// >>> demo = lh.Scenario.load("demo/download").select("TCP").set("duration", "10 s")
/// >>> runs = demo.set("tcp.congestion", FromFour).run(seeds=1)
/// >>> 4 * 1448 in runs.series("cwnd").to_pydict()["cwnd_bytes"]
/// True
#[pyclass(frozen, module = "longhaul")]
#[derive(Clone, Debug)]
pub(crate) struct Start(congestion::Start);

#[pymethods]
impl Start {
    /// Payload bytes of a full segment.
    #[getter]
    const fn mss(&self) -> u64 {
        self.0.mss
    }

    /// Initial window in bytes.
    #[getter]
    const fn initial_window(&self) -> u64 {
        self.0.initial_window
    }

    /// Segments that one acknowledgement may open the window by in slow start (RFC 3465).
    #[getter]
    const fn byte_counting_limit(&self) -> u64 {
        self.0.byte_counting_limit
    }

    /// Initial slow start threshold in bytes.
    #[getter]
    const fn ssthresh(&self) -> u64 {
        self.0.ssthresh
    }

    /// Round-trip time that the handshake showed, in seconds; None if it showed none.
    #[getter]
    fn srtt_s(&self) -> Option<f64> {
        self.0.srtt.map(base::Duration::as_secs_f64)
    }

    /// Whether the connection spaces out what a window lets go.
    #[getter]
    const fn paced(&self) -> bool {
        self.0.paced
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Which of the methods that may be left out a class has.
#[derive(Clone, Copy, Debug)]
struct Overridden {
    send_opportunity: bool,
    recovery_exit: bool,
    restart: bool,
}

/// One connection's controller in Python. What it answers is kept between calls.
#[derive(Debug)]
struct InPython {
    object: Py<PyAny>,
    overridden: Overridden,
    mss: u64,
    window: u64,
    ssthresh: Option<u64>,
    pacing_rate: Option<Rate>,
}

impl InPython {
    fn build(class: &Py<PyAny>, overridden: Overridden, start: &congestion::Start) -> PyResult<Self> {
        Python::attach(|py| {
            let object = class.call1(py, (Start(*start),))?;
            let (mss, window) = (start.mss, start.initial_window);
            let mut this = Self { object, overridden, mss, window, ssthresh: None, pacing_rate: None };
            this.refresh(py)?;
            Ok(this)
        })
    }

    /// Calls the object, and looks what it answers from now on. An error ends the run.
    fn call(&mut self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        if work::is_interrupted() {
            work::abort(pyo3::exceptions::PyKeyboardInterrupt::new_err(()));
        }
        let result = Python::attach(|py| {
            call(self.object.bind(py))?;
            self.refresh(py)
        });
        result.unwrap_or_else(|error| work::abort(error));
    }

    fn refresh(&mut self, py: Python<'_>) -> PyResult<()> {
        let object = self.object.bind(py);
        let window = whole(&object.getattr(intern!(py, "window"))?, "window")?;
        let window =
            window.ok_or_else(|| PyTypeError::new_err("window = None; allowed are numbers of bytes"))?;
        self.window = window.max(self.mss);
        self.ssthresh = whole(&object.getattr(intern!(py, "ssthresh"))?, "ssthresh")?;
        let rate = whole(&object.getattr(intern!(py, "pacing_rate_bps"))?, "pacing_rate_bps")?;
        self.pacing_rate = rate.filter(|rate| *rate > 0).map(Rate::from_bps);
        Ok(())
    }
}

/// A whole number of a controller's, which may be a float.
fn whole(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<u64>> {
    if value.is_none() {
        return Ok(None);
    }
    if let Ok(number) = value.extract::<u64>() {
        return Ok(Some(number));
    }
    match value.extract::<f64>() {
        Ok(number) if number >= 0.0 => Ok(Some(number as u64)),
        _ => Err(PyTypeError::new_err(format!("{name} = {value}; allowed are numbers from 0 on"))),
    }
}

impl Controller for InPython {
    fn on_ack(&mut self, ack: &congestion::AckSample) {
        self.call(|object| {
            object.call_method1(intern!(object.py(), "on_ack"), (AckSample(*ack),)).map(|_| ())
        });
    }

    fn on_congestion(&mut self, event: &congestion::Congestion) {
        self.call(|object| {
            object.call_method1(intern!(object.py(), "on_congestion"), (Congestion(*event),)).map(|_| ())
        });
    }

    fn on_send_opportunity(&mut self, now: Instant, in_flight: u64) {
        if self.overridden.send_opportunity {
            self.call(|object| {
                object.call_method1("on_send_opportunity", (now.as_secs_f64(), in_flight)).map(|_| ())
            });
        }
    }

    fn on_recovery_exit(&mut self, now: Instant) {
        if self.overridden.recovery_exit {
            self.call(|object| object.call_method1("on_recovery_exit", (now.as_secs_f64(),)).map(|_| ()));
        }
    }

    fn on_restart(&mut self, now: Instant) {
        if self.overridden.restart {
            self.call(|object| object.call_method1("on_restart", (now.as_secs_f64(),)).map(|_| ()));
        }
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn set_window(&mut self, window: u64, ssthresh: Option<u64>) {
        self.call(|object| object.call_method1("set_window", (window, ssthresh)).map(|_| ()));
    }

    fn ssthresh(&self) -> Option<u64> {
        self.ssthresh
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }
}

/// Lets scenarios name a subclass of `base` as `congestion = { external = "name" }`.
#[pyfunction]
pub(crate) fn register(name: &str, class: Py<PyAny>, base: &Bound<'_, PyAny>) -> PyResult<()> {
    let of = class.bind(base.py());
    let has = |method: &str| Ok::<_, PyErr>(!of.getattr(method)?.is(&base.getattr(method)?));
    let overridden = Overridden {
        send_opportunity: has("on_send_opportunity")?,
        recovery_exit: has("on_recovery_exit")?,
        restart: has("on_restart")?,
    };
    let build = move |start: &congestion::Start| {
        InPython::build(&class, overridden, start).unwrap_or_else(|error| work::abort(error))
    };
    Factory::new(name, build).register();
    Ok(())
}
