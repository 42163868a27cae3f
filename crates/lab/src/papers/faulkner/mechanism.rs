//! Sections 2.2 and 2.3: how COTMLL works.
//!
//! Endpoints are driven by scripts where a claim is about a rule, and by links under load where it is about what the rules
//! come to. A saturated link carries datagrams of 1500 bytes both ways, so that frames in both directions are full and a
//! frame's acknowledgement is as rare as it can be.

mod age;
mod alternation;
mod bare;
mod busy;
mod feedback;
mod flags;
mod gaps;
mod order;

use super::Topic;
use crate::reproduce::{Cell, Ruling, Samples};

pub(super) const TOPIC: Topic = Topic {
    experiments: &[
        busy::EXPERIMENT,
        feedback::EXPERIMENT,
        age::EXPERIMENT,
        flags::EXPERIMENT,
        order::EXPERIMENT,
        alternation::EXPERIMENT,
        gaps::EXPERIMENT,
        bare::EXPERIMENT,
    ],
    rule,
    remark,
    cells,
    figures: |_| Vec::new(),
};

/// What `--figure` calls the topic: the thesis has no figure of it.
const FIGURE: &str = "mechanism";
/// The link of the scenarios.
const LINK: &str = "satellite";

fn rule(claim: &str, samples: &Samples) -> Option<Ruling> {
    match claim {
        "faulkner-no-timer-line-always-busy" => Some(busy::rule(samples)),
        "faulkner-efficient-with-lossy-feedback" => Some(feedback::rule(samples)),
        "faulkner-just-in-time-acknowledgement" => Some(age::rule(samples)),
        "faulkner-block-ack-flags-only-lost-frames" => Some(flags::rule(samples)),
        "faulkner-transmission-order" => Some(order::rule(samples)),
        "faulkner-acknowledgement-alternation" => Some(alternation::rule(samples)),
        "faulkner-block-ack-suits-blockage" => Some(gaps::rule(samples)),
        "faulkner-bare-acknowledgements-rare" => Some(bare::rule(samples)),
        _ => None,
    }
}

fn remark(claim: &str) -> Option<&'static str> {
    Some(match claim {
        "faulkner-efficient-with-lossy-feedback" => {
            "That acknowledgements are lost has no part in it: without such losses as much is missing. A receiver tells of \
             the first block beyond its gap alone, so that a retransmission that is lost too probably waits until the window \
             is full and rule 3 comes to it. Told of the block that came last (ours), the link carries up to twice as much."
        }
        "faulkner-block-ack-flags-only-lost-frames" => {
            "A block does not say where the gap before it starts. Frames that have come in order since the last cumulative \
             acknowledgement that got through lie before the block as well, and are flagged with those that are lost. \
             Against a block's first sendings no other flag is false, and half as many are set."
        }
        "faulkner-bare-acknowledgements-rare" => {
            "While a gap holds the segments back, the terminal has nothing to acknowledge to TCP, and its last ACKs soon have \
             arrived: with delivery out of order, which is told beside it, far fewer bare acknowledgements are left."
        }
        _ => return None,
    })
}

fn cells(samples: &Samples) -> Vec<Cell> {
    let mut cells = feedback::cells(samples);
    cells.extend(flags::cells(samples));
    cells.extend(gaps::cells(samples));
    cells
}
