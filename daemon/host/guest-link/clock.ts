/** A guest's wall clock seen from the host: its offset, and its correction once the path to the guest is warm. */
import type { ClockRequest, ClockResult } from "../../../shared/agent-protocol/messages.ts";
import { fineWallMs } from "../../core/clock.ts";
import { answerOf } from "./answer.ts";
import type { GuestLink } from "./handshake.ts";

/** An agent with much pending output answers after that output. */
const DEADLINE_MS = 10_000;
/** The first answer is late and inexact. */
const MAX_CORRECTIONS = 3;
const GOOD_ENOUGH_MS = 2;
/** A busy host answers after seconds: another reading may be faster, and so more exact. */
const EXACT_MS = 25;

interface Reading {
  /** Guest's clock minus host's clock, if the answer was sent halfway between request and response. */
  middleMs: number;
  /** Half of the round trip: the bound of the error of `middleMs`. */
  errorMs: number;
  /** The part of the difference that the round trip cannot explain. */
  sureMs: number;
}

/** Offset of the guest's clock from ours, in milliseconds, in excess of the request's time. */
export async function clockSkewMs(link: GuestLink): Promise<number> {
  const { sureMs } = await readClock(link, { method: "clock" });
  return Math.round(sureMs * 1000) / 1000;
}

/**
 * Corrects the guest's clock: the welcome set it late, delayed on its way through a guest that had just resumed. The fastest of several
 * readings counts: a slower one corrects only the error in excess of its round trip.
 */
export async function correctClock(link: GuestLink): Promise<void> {
  let reading = await readClock(link, { method: "clock" });
  let errorMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < MAX_CORRECTIONS; round++) {
    const offMs = reading.errorMs < errorMs ? reading.middleMs : reading.sureMs;
    errorMs = Math.min(errorMs, reading.errorMs);
    const isRight = Math.abs(offMs) <= GOOD_ENOUGH_MS;
    if (isRight && errorMs <= EXACT_MS) return;
    const adjust_ns = isRight ? "0" : String(BigInt(Math.round(-offMs * 1_000_000)));
    reading = await readClock(link, { method: "clock", adjust_ns });
  }
}

async function readClock(link: GuestLink, request: ClockRequest): Promise<Reading> {
  const askedAt = fineWallMs();
  const answer = (await answerOf(link, request, DEADLINE_MS, "the guest's clock")) as ClockResult;
  const answeredAt = fineWallMs();
  const clock = Number(BigInt(answer.clock_ns) / 1000n) / 1000;
  return {
    middleMs: clock - (askedAt + answeredAt) / 2,
    errorMs: (answeredAt - askedAt) / 2,
    sureMs: clock < askedAt ? clock - askedAt : Math.max(0, clock - answeredAt),
  };
}
