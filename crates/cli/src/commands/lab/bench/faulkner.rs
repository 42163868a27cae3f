//! `longhaul bench faulkner`: two figures of the thesis by the kernel's TCP in real time, beside the lab.

use fs_err as fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base::Duration;
use base::config::ConfigError;
use field::bulk::{self, Case, Options, Run};
use field::comparison::configuration::Configuration;
use field::emulator::CHANNEL_NAME;
use field::testbed::{self, TestbedError};
use gateway::signals::Signals;
use indicatif::{ProgressBar, ProgressStyle};
use lab::real_time::{self, DELAY, Figure, Outcome, Point, QUEUE, RATE, Scheme, Span};
use lab::statistics::Spread;
use serde_json::{Value, json};
use tunnel::config::{Link, LinkRate};
use tunnel::session;

use super::tcp::configuration;
use crate::commands::outcome::{failure, misconfigured, say};

/// Measure figures 4-4 and 4-15 of Faulkner 2004 with the kernel's TCP over two gateways, and compare with the lab. Needs root.
///
/// Each run has its own testbed and takes real time. As in the lab, only the frames count towards the lines' 262144 bit/s.
/// Channel realisations are the lab's.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  longhaul bench faulkner --figure 4-4 --seconds 150 --seeds 3 --jobs 14
  longhaul bench faulkner --figure 4-15 --d 0.6 --d 1 --out out/windows \\
      --json")]
pub(crate) struct Arguments {
    /// Figure to measure: 4-4 (throughput over the blocked fraction) or 4-15 (throughput over COTMLL's window).
    #[arg(long, value_name = "NUMBER", value_parser = figure)]
    figure: Figure,
    /// Only this point of the figure's x axis, a blocked fraction or a window in frames; may be repeated [default: all].
    #[arg(long = "at", value_name = "PLACE")]
    places: Vec<f64>,
    /// Mean duration of a blockage, in seconds; may be repeated.
    #[arg(long = "d", value_name = "SECONDS", default_values_t = [1.0], value_parser = duration)]
    durations: Vec<f64>,
    /// Channel realisations: seeds 1 to this number.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// How long each transfer lasts, in seconds.
    #[arg(long, default_value_t = 150, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Settings of both TCPs: reno or cubic, optionally followed by -sack and -scaling.
    #[arg(long, value_name = "NAME", default_value = "cubic-sack-scaling", value_parser = configuration)]
    configuration: Configuration,
    /// Testbeds to run at the same time: about six per core, or the machine cannot keep the lines busy.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..=200))]
    jobs: u16,
    /// Directory for the points (kernel-NUMBER.json) and the figure (kernel-NUMBER.svg).
    #[arg(long, default_value = "out/kernel")]
    out: PathBuf,
    /// Print one JSON object with every run instead of a table.
    #[arg(long)]
    json: bool,
}

/// When transfers open, by the emulator's clock: time enough to learn that it runs.
const OPENS: Duration = Duration::from_secs(3);
/// Largest IP packet between the hosts, in bytes: an Ethernet's, as in the lab.
const MTU: u32 = testbed::ETHERNET_MTU;
/// Of the carrier: such a packet fits into one datagram, with the headers of IP, UDP and session.
const CARRIER_MTU: u32 = MTU + 100;
/// Bytes of the line that a datagram occupies besides its own: 5 of the frame layer, as in the lab, and not the 28
/// of IP and UDP and those of the session.
const OVERHEAD: i32 = 5 - 28 - session::OVERHEAD as i32;

fn figure(number: &str) -> Result<Figure, String> {
    let numbers = || Figure::ALL.map(Figure::number).join(", ");
    Figure::numbered(number).ok_or_else(|| format!("allowed are {}", numbers()))
}

fn duration(seconds: &str) -> Result<f64, String> {
    match seconds.parse() {
        Ok(seconds) if (0.001..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("allowed are 0.001 to 3600".to_owned()),
    }
}

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    let figure = args.figure;
    let places = if args.places.is_empty() { figure.places().to_vec() } else { args.places.clone() };
    if let Some(complaint) = places.iter().find_map(|place| figure.complaint(*place)) {
        return misconfigured(format_args!("--at: {complaint}"));
    }
    let seeds: Vec<u64> = (1..=args.seeds).collect();
    let cases = figure.cases(&places, &args.durations, &seeds);
    let span = Span { opens: OPENS, duration: Duration::from_secs(args.seconds.into()) };
    let result = measure(args, &cases, span);
    let (lab, kernel) = match result {
        Ok(results) => results,
        Err(error) => return failure(error),
    };
    let throughput = |run: &Run| run.bytes as f64 * 8.0 / f64::from(args.seconds) / RATE.as_bps() as f64;
    let points: Vec<Point> = cases
        .iter()
        .zip(&lab)
        .zip(&kernel)
        .map(|((case, lab), kernel)| figure.point(case, throughput(kernel), *lab, span))
        .collect();
    if let Err(error) = write(&args.out, figure, &points) {
        return failure(format_args!("{}: {error}", args.out.display()));
    }
    if args.json {
        say!("{:#}", object(figure, &points, &lab, &kernel));
    } else {
        print(args, &points, &kernel);
    }
    ExitCode::SUCCESS
}

/// First the lab, then the kernel, so that the lab's work does not keep the gateways from theirs.
fn measure(
    args: &Arguments,
    cases: &[real_time::Case],
    span: Span,
) -> Result<(Vec<Outcome>, Vec<Run>), TestbedError> {
    let mut signals = Signals::new()?;
    let lab = real_time::measure(cases, &args.configuration.table(), CHANNEL_NAME, span)?;
    let transfers = cases.iter().map(transfer).collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    let options = Options {
        configuration: args.configuration,
        host_buffers: None,
        streams: 1,
        mtu: MTU,
        carrier_mtu: CARRIER_MTU,
        opens: span.opens,
        duration: span.duration,
        jobs: args.jobs.into(),
    };
    let bar = ProgressBar::new(cases.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} transfers, {eta} left") {
        bar.set_style(style);
    }
    let kernel = bulk::run(&options, &transfers, &mut signals, |_| bar.inc(1));
    bar.finish_and_clear();
    let named = |(case, run): (&real_time::Case, Result<Run, TestbedError>)| {
        let real_time::Case { scheme, f, d, window, seed } = case;
        let scheme = scheme.name();
        run.map_err(|error| {
            io::Error::other(format!("{scheme}, f = {f}, d = {d} s, window {window}, seed {seed}: {error}"))
        })
    };
    Ok((lab, cases.iter().zip(kernel?).map(named).collect::<Result<_, _>>()?))
}

/// A case as gateways and emulator take it.
fn transfer(case: &real_time::Case) -> Result<Case, ConfigError> {
    let link = Link::parse("the gateways' link", &format!("{}overhead = {OVERHEAD}\n", case.link()))?;
    let rate = LinkRate::of(RATE).unwrap_or_else(|| unreachable!("{RATE} is above zero"));
    let channel = [
        ("--rate", format!("{} bit/s", RATE.as_bps())),
        ("--delay", format!("{} ms", DELAY.as_millis())),
        ("--seed", case.seed.to_string()),
        ("--line-queue", QUEUE.to_string()),
        ("--overhead", OVERHEAD.to_string()),
    ];
    Ok(Case {
        pep: None,
        link: Some(testbed::Link { config: link, up: rate, down: rate }),
        rate: RATE,
        channel: channel.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect(),
        errors: case.errors(),
        flood: 0,
    })
}

fn write(out: &Path, figure: Figure, points: &[Point]) -> io::Result<()> {
    fs::create_dir_all(out)?;
    let file = |ending: &str| out.join(format!("kernel-{}.{ending}", figure.number()));
    let text = json!({ "figure": figure.number(), "points": points });
    fs::write(file("json"), format!("{text:#}\n"))?;
    fs::write(file("svg"), real_time::draw(figure, points))
}

/// The runs of one place on one curve.
struct Cell {
    scheme: Scheme,
    place: f64,
    d: f64,
    kernel: Spread,
    lab: Spread,
    bound: Spread,
    /// The kernel's throughput as a multiple of the lab's, of each realisation where the lab's is not zero.
    ratio: Option<Spread>,
}

fn cells(figure: Figure, points: &[Point]) -> Vec<Cell> {
    let place = |point: &Point| match figure {
        Figure::Blockage => point.f,
        Figure::Window => f64::from(point.window),
    };
    let key = |point: &Point| (point.scheme, place(point).to_bits(), point.d.to_bits());
    let mut cells = Vec::new();
    let mut seen = Vec::new();
    for point in points {
        if seen.contains(&key(point)) {
            continue;
        }
        seen.push(key(point));
        let here = || points.iter().filter(|other| key(other) == key(point));
        let spreads = [|p: &Point| p.kernel, |p: &Point| p.lab, |p: &Point| p.bound]
            .map(|value| Spread::of(here().map(value)));
        let ratio = Spread::of(here().filter(|p| p.lab > 0.0).map(|p| p.kernel / p.lab));
        if let [Some(kernel), Some(lab), Some(bound)] = spreads {
            let (scheme, place, d) = (point.scheme, place(point), point.d);
            cells.push(Cell { scheme, place, d, kernel, lab, bound, ratio });
        }
    }
    cells
}

fn print(args: &Arguments, points: &[Point], kernel: &[Run]) {
    let figure = args.figure;
    say!(
        "figure {}: throughput / line rate over {} seeds of {} s each: mean (min - max); {}\n",
        figure.number(),
        args.seeds,
        args.seconds,
        args.configuration.name(),
    );
    let axis = match figure {
        Figure::Blockage => "f",
        Figure::Window => "frames",
    };
    say!(
        "scheme  {axis:>6}     d               kernel                  lab     kernel/lab: median (min - max)  bound"
    );
    for cell in cells(figure, points) {
        let [kernel, lab] = [&cell.kernel, &cell.lab]
            .map(|spread| format!("{:.3} ({:.3} - {:.3})", spread.mean, spread.min, spread.max));
        let ratio = cell.ratio.map_or_else(String::new, |ratio| {
            format!("{:.2} ({:.2} - {:.2})", ratio.median, ratio.min, ratio.max)
        });
        say!(
            "{:6}  {:>6}  {:>4}  {kernel:>19}  {lab:>19}  {ratio:>33}  {:.3}",
            cell.scheme.name(),
            cell.place,
            cell.d,
            cell.bound.mean,
        );
    }
    let of_runs = |value: fn(&Run) -> f64| Spread::of(kernel.iter().map(value));
    if let (Some(mean), Some(worst)) =
        (of_runs(|run| run.mean_lateness_ms), of_runs(|run| run.greatest_lateness_ms))
    {
        say!(
            "\nemulators were late by {:.2} ms on average ({:.2} in the worst run); maximum: {:.1} ms in the median run, \
             {:.1} ms in the worst",
            mean.mean,
            mean.max,
            worst.median,
            worst.max
        );
    }
    let busy = points.iter().zip(kernel).filter(|(point, _)| point.scheme == Scheme::TcpLl);
    if let Some(busy) = Spread::of(busy.flat_map(|(_, run)| run.line_use)) {
        say!("COTMLL kept its lines busy {:.4} of the time (minimum {:.4})", busy.mean, busy.min);
    }
    say!("{}", args.out.join(format!("kernel-{}.svg", figure.number())).display());
}

fn object(figure: Figure, points: &[Point], lab: &[Outcome], kernel: &[Run]) -> Value {
    let run = |((point, lab), kernel): ((&Point, &Outcome), &Run)| json!({ "point": point, "kernel": kernel, "lab_retransmissions": lab.retransmissions });
    let runs: Vec<Value> = points.iter().zip(lab).zip(kernel).map(run).collect();
    json!({ "figure": figure.number(), "runs": runs })
}
