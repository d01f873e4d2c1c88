/**
 * Pauses and resumes a guest. Its processors stop; its memory and its devices stay as they are.
 *
 *     hold its connection → stop the processors ⇒ paused → resume → release its connection → set its clock
 *
 * A connection that was lost in the meantime, by a restart of the daemon, comes back over a new vsock device.
 */
import { DeadlineError } from "../../core/concurrency/published.ts";
import { correctClock } from "../guest-link/clock.ts";
import type { GuestLink } from "../guest-link/handshake.ts";
import type { Guest } from "./start.ts";

/** A guest that is too busy to answer by then is not stopped. */
const HOLD_DEADLINE_MS = 10_000;
/** How long a running agent may be silent. */
const AGENT_DEADLINE_MS = 30_000;

/** QEMU did not answer: it is unknown whether the guest is paused. */
export class StuckError extends Error {
  override name = "StuckError";
}

/** Pauses the guest. Throws if it keeps running as before, and StuckError if that is not certain. */
export async function pauseGuest({ connection, changeRun }: Guest): Promise<void> {
  await connection.hold(HOLD_DEADLINE_MS);
  try {
    await changeRun((machine) => machine.pause());
  } catch (error) {
    if (error instanceof DeadlineError) throw new StuckError("QEMU did not answer the request to pause the guest");
    connection.release();
    throw error;
  }
}

/** Resumes the guest and corrects its clock. Throws when the guest does not answer. */
export async function resumeGuest(guest: Guest, signal: AbortSignal): Promise<void> {
  await guest.changeRun((machine) => machine.resume());
  guest.connection.release();
  await regainGuest(guest, signal);
}

/** After a pause of the guest: regains its connection, or a new one, and corrects its clock. Throws when the guest does not answer. */
export async function regainGuest(guest: Guest, signal: AbortSignal): Promise<void> {
  const link = await meetAgain(guest, signal);
  try {
    await correctClock(link);
  } catch {
    // Data on its way at the time of the pause may have cost it its vsock device. A new connection comes with its clock set.
    link.close("the guest does not answer after standby");
    await link.closed;
    await meetAgain(guest, signal);
  }
}

/** Throws when the agent does not connect, also over a new vsock device. */
async function meetAgain({ connection, ensureVsock }: Guest, signal: AbortSignal): Promise<GuestLink> {
  await ensureVsock(signal);
  try {
    return await connection.link(AGENT_DEADLINE_MS, signal);
  } catch (error) {
    if (signal.aborted || !(error instanceof DeadlineError)) throw error;
  }
  // A connection setup that kept the device from being replaced has failed.
  await ensureVsock(signal);
  return await connection.link(AGENT_DEADLINE_MS, signal);
}
