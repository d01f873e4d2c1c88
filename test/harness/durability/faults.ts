/**
 * Faults of a daemon and its guests for tests: each is injected from outside, and declares its expected outcome. Its promise resolves after
 * the service has handled it.
 */
import { expect } from "vitest";
import type { TestDaemon } from "../daemon.ts";
import { type Part, processesOf, until } from "../guests.ts";

/** A guest that a fault befalls. */
export interface Victim {
  room: string;
  sandbox_id: string;
}

export interface Fault {
  name: string;
  /** Whether the sandbox is lost by it. */
  fatal: boolean;
  run(daemon: TestDaemon, victim: Victim): Promise<void>;
}

/** Under TCG, on a host with other load; tests without other load assert the product's own limits. */
const DEALT_WITH_MS = 60_000;

const pathOf = ({ room, sandbox_id }: Victim) => `/v1/rooms/${room}/sandboxes/${sandbox_id}`;

function signal(daemon: TestDaemon, part: Part, { sandbox_id }: Victim, how: NodeJS.Signals): void {
  const pids = processesOf(daemon, part, sandbox_id);
  expect(pids, `${part} of ${sandbox_id}`).not.toEqual([]);
  for (const pid of pids) process.kill(pid, how);
}

async function untilFailed(daemon: TestDaemon, victim: Victim): Promise<void> {
  await until(
    `sandbox ${victim.sandbox_id} is failed`,
    async () => (await daemon.api("GET", pathOf(victim))).body.state === "failed",
    DEALT_WITH_MS,
  );
  await daemon.ok("DELETE", pathOf(victim));
}

/** A command that must work again, sooner or later. */
async function untilRuns(daemon: TestDaemon, victim: Victim, command: string): Promise<void> {
  await until(
    `${command} runs in ${victim.sandbox_id}`,
    async () => {
      const { status, body } = await daemon.api("POST", `${pathOf(victim)}/exec`, { command, timeout_ms: 5_000 });
      return status === 200 && body.exit_code === 0;
    },
    DEALT_WITH_MS,
  );
}

export const FAULTS: readonly Fault[] = [
  {
    name: "QEMU is killed",
    fatal: true,
    run: async (daemon, victim) => {
      signal(daemon, "qemu", victim, "SIGKILL");
      await untilFailed(daemon, victim);
    },
  },
  {
    name: "QEMU is stopped",
    fatal: true,
    run: async (daemon, victim) => {
      signal(daemon, "qemu", victim, "SIGSTOP");
      await daemon.ok("DELETE", pathOf(victim));
    },
  },
  {
    name: "the guest's kernel panics",
    fatal: true,
    run: async (daemon, victim) => {
      await daemon.api("POST", `${pathOf(victim)}/exec`, { command: "echo c >/proc/sysrq-trigger; sleep 60" });
      await untilFailed(daemon, victim);
    },
  },
  {
    name: "virtiofsd is killed",
    fatal: false,
    run: async (daemon, victim) => {
      signal(daemon, "virtiofsd", victim, "SIGKILL");
      await untilRuns(daemon, victim, "echo back >/mnt/drive/back && cat /mnt/drive/back");
    },
  },
  {
    name: "the vsock device is killed",
    fatal: false,
    run: async (daemon, victim) => {
      signal(daemon, "vsock", victim, "SIGKILL");
      await untilRuns(daemon, victim, "true");
    },
  },
  {
    name: "the agent is told to stand still",
    fatal: false,
    run: async (daemon, victim) => {
      // Process 1 heeds no signal that it has no handler for, from within.
      await daemon.api("POST", `${pathOf(victim)}/exec`, { command: "kill -STOP 1; kill -KILL 1; true" });
      await untilRuns(daemon, victim, "true");
    },
  },
  {
    name: "the drive is filled by its guest",
    fatal: false,
    run: async (daemon, victim) => {
      const write = () =>
        daemon.api("POST", `/v1/rooms/${victim.room}/drive/write`, { path: "beside", content: "beside" });
      const fill = "fallocate -l 8G /mnt/drive/fill; true";
      await daemon.api("POST", `${pathOf(victim)}/exec`, { command: fill, timeout_ms: 20_000 });
      expect([200, 201, 507]).toContain((await write()).status);
      // A drive that is far over its quota is held: its guests wait until a call has deleted enough.
      await daemon.api("DELETE", `/v1/rooms/${victim.room}/drive/delete?path=fill`);
      await untilRuns(daemon, victim, "rm -f /mnt/drive/fill");
      await until("the drive takes files again", async () => (await write()).status < 300, DEALT_WITH_MS);
    },
  },
  {
    name: "the daemon is killed",
    fatal: false,
    run: async (daemon, victim) => {
      await daemon.restart("SIGKILL");
      await untilRuns(daemon, victim, "true");
    },
  },
];
