/** Owns a guest's wall clock seen from the host: how far it is off, and setting it right once the way there is warm. */
import type { ClockRequest, ClockResult } from "../../../shared/agent-protocol/messages.ts";
import { answerOf } from "./answer.ts";
import type { GuestLink } from "./handshake.ts";

/** An agent in the midst of a flood of output answers behind it. */
const DEADLINE_MS = 10_000;
/** The first answer comes late and says little; the second is exact to its own way there and back. */
const MOST_CORRECTIONS = 3;
const GOOD_ENOUGH_MS = 2;

interface Reading {
  /** Guest minus host, taking the answer for half way between asking and being answered. */
  middleMs: number;
  /** What of it cannot be the time of asking. */
  sureMs: number;
}

/** How far the guest's clock is from ours, in milliseconds, beyond the time of asking. */
export async function clockSkewMs(link: GuestLink): Promise<number> {
  const { sureMs } = await readClock(link, { method: "clock" });
  return Math.round(sureMs * 1000) / 1000;
}

/** Sets the guest's clock right: what the welcome set was late by its own way through a guest that had just woken. */
export async function correctClock(link: GuestLink): Promise<void> {
  let reading = await readClock(link, { method: "clock" });
  for (let round = 0; round < MOST_CORRECTIONS && Math.abs(reading.middleMs) > GOOD_ENOUGH_MS; round++) {
    const adjust_ns = String(BigInt(Math.round(-reading.middleMs * 1_000_000)));
    reading = await readClock(link, { method: "clock", adjust_ns });
  }
}

async function readClock(link: GuestLink, request: ClockRequest): Promise<Reading> {
  const askedAt = performance.timeOrigin + performance.now();
  const answer = (await answerOf(link, request, DEADLINE_MS, "the guest's clock")) as ClockResult;
  const answeredAt = performance.timeOrigin + performance.now();
  const clock = Number(BigInt(answer.clock_ns) / 1000n) / 1000;
  return {
    middleMs: clock - (askedAt + answeredAt) / 2,
    sureMs: clock < askedAt ? clock - askedAt : Math.max(0, clock - answeredAt),
  };
}
