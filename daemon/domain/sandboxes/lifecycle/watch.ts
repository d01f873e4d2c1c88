/** Detects that a running guest has ended, is paused because the disk is full, or has an unresponsive agent. */
import type { ExitCause } from "../../../../shared/api/sandboxes.ts";
import { startTimer, stopTimer } from "../../../core/clock.ts";
import { regainGuest } from "../../../host/guest/standby.ts";
import type { Guest } from "../../../host/guest/start.ts";

/** A guest is unusable if its agent is silent for this long. */
export const AGENT_LOST_MS = 30_000;

const ENDINGS = {
  panic: { cause: "guest_panic", message: "The guest's kernel panicked" },
  power_off: { cause: "user_requested", message: "The guest powered itself off" },
  out_of_memory: { cause: "oom", message: "The host killed a process of the virtual machine at its memory limit" },
  oom: { cause: "oom", message: "The host ran out of memory and killed the virtual machine" },
  nonsense: { cause: "vmm_crash", message: "The virtual machine violated the monitor protocol and was ended" },
  crash: { cause: "vmm_crash", message: "The virtual machine ended unexpectedly" },
} as const satisfies Record<string, { cause: ExitCause; message: string }>;

/** Watches a guest until `over`. Each callback may be called repeatedly. */
export function watchGuest(
  guest: Guest,
  over: AbortSignal,
  hear: {
    ended(cause: ExitCause, message: string): void;
    silent(): void;
    /** QEMU has paused the guest because the host's disk is full, or resumed it. */
    stalled(stands: boolean): void;
    /** Faults of its parts may have changed. */
    health(): void;
  },
): void {
  guest.exited.then((how) => {
    const { cause, message } = ENDINGS[guest.ending() ?? "crash"];
    if (!over.aborted) hear.ended(cause, `${message} (QEMU: ${how}).`);
  });
  const { state } = guest.connection;
  const watchLink = async () => {
    while (!over.aborted) {
      await state.until(({ link }) => link === null, Number.POSITIVE_INFINITY, over);
      const timer = startTimer(() => hear.silent(), AGENT_LOST_MS);
      try {
        await state.until(({ link }) => link !== null, Number.POSITIVE_INFINITY, over);
      } finally {
        stopTimer(timer);
      }
    }
  };
  const { stalled } = guest.machine;
  const watchStall = async () => {
    while (!over.aborted) {
      await stalled.until((stands) => stands, Number.POSITIVE_INFINITY, over);
      guest.connection.freeze();
      // QEMU announces the stop of the guest before it happens.
      guest.changeRun((machine) => machine.stopped()).catch(() => {});
      hear.stalled(true);
      await stalled.until((stands) => !stands, Number.POSITIVE_INFINITY, over);
      guest.connection.release();
      regainGuest(guest, over).catch(() => hear.silent());
      hear.stalled(false);
    }
  };
  const watchHealth = async () => {
    while (!over.aborted) {
      const { generation } = guest.health;
      hear.health();
      await guest.health.until(() => guest.health.generation !== generation, Number.POSITIVE_INFINITY, over);
    }
  };
  watchHealth().catch(() => {});
  watchStall().catch(() => {});
  watchLink().catch(() => {});
}
