//! `longhaul gateway top`: a gateway's peers and their last minutes, in a terminal.

mod screen;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use base::Instant;
use gateway::clock::{self, Clock};
use gateway::daemon::Status;
use gateway::daemon::query::{self, Asked, Place};
use gateway::history::History;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::outcome::{failure, misconfigured};
use screen::Screen;

/// Watch a running gateway: its peers, and curves of the last ten minutes.
///
/// Arrow keys choose the peer whose curves are shown; q ends it. Needs root, or the gateway's user.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  longhaul gateway top\n  longhaul gateway top sat0")]
pub(crate) struct Arguments {
    /// Name of the gateway's TUN device; needed where several gateways run.
    device: Option<String>,
}

/// Between two looks at the gateway.
const EVERY: base::Duration = base::Duration::from_secs(1);

pub(crate) fn execute(args: &Arguments) -> ExitCode {
    if !io::stdout().is_terminal() {
        return misconfigured("top draws on a terminal, and this is none; `longhaul gateway status` prints");
    }
    // A gateway that is started anew has another place, but the same device.
    let device = match find(args.device.as_deref()) {
        Ok(place) => place.device().to_owned(),
        Err(reason) => return failure(reason),
    };
    match ratatui::try_init().and_then(|terminal| {
        let watched = watch(terminal, &device);
        ratatui::try_restore()?;
        watched
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure(error),
    }
}

/// The one gateway that is meant.
fn find(device: Option<&str>) -> Result<Place, String> {
    let mut places = query::running().map_err(|error| format!("the list of gateways: {error}"))?;
    places.retain(|place| device.is_none_or(|device| device == place.device()));
    match &places[..] {
        [] => Err(match device {
            Some(device) => format!("no gateway with the device {device} runs in this network namespace"),
            None => "no gateway runs in this network namespace".to_owned(),
        }),
        [place] => Ok(place.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(Place::device).collect();
            Err(format!("several gateways run; name one of {}", names.join(", ")))
        }
    }
}

fn ask(device: &str) -> Result<Status, String> {
    let answer = query::ask(&[find(Some(device))?]).pop();
    match answer {
        Some(Asked { status, .. }) => status.map_err(|error| error.to_string()),
        None => Err("it has ended".to_owned()),
    }
}

fn watch(mut terminal: DefaultTerminal, device: &str) -> io::Result<()> {
    let (mut history, clock) = (History::default(), Clock::start());
    let (mut screen, mut due) = (Screen::default(), Instant::ZERO);
    loop {
        if clock.now() >= due {
            screen.trouble = match ask(device) {
                Ok(status) => {
                    history.take(&status, clock::seconds_of_day());
                    None
                }
                Err(reason) => Some(reason),
            };
            due = clock.now() + EVERY;
        }
        terminal.draw(|frame| screen.draw(frame, &history))?;
        let wait = Duration::from_nanos(due.saturating_since(clock.now()).as_nanos());
        if event::poll(wait)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
            && !heed(&mut screen, key)
        {
            return Ok(());
        }
    }
}

/// Does what a key says; false ends it.
fn heed(screen: &mut Screen, key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return false,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
        KeyCode::Down | KeyCode::Char('j') => screen.chosen = screen.chosen.saturating_add(1),
        KeyCode::Up | KeyCode::Char('k') => screen.chosen = screen.chosen.saturating_sub(1),
        _ => {}
    }
    true
}
