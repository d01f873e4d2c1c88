/** Restrictions of shares, on a process that plays one: held shares, temporary answers to QEMU, and release. */
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DeadlineError } from "../../../../daemon/core/concurrency/published.ts";
import type { ProcessRecord } from "../../../../daemon/host/process.ts";
import { modeFound, Throttle, wake } from "../../../../daemon/host/virtiofs/throttle.ts";

let child: Bun.Subprocess;
let share: ProcessRecord;
beforeEach(() => {
  child = Bun.spawn(["/usr/bin/env", "--ignore-signal=XFSZ", "sleep", "300"]);
  share = { pid: child.pid, start_ticks: statOf(child.pid)[19] ?? "" };
});
afterEach(async () => {
  child.kill("SIGKILL");
  await child.exited;
});

/** The fields of /proc/<pid>/stat after the name; the first is the state. */
function statOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** A process is stopped as soon as the signal is sent, or nearly so. */
async function untilStands(stands: boolean): Promise<void> {
  const deadline = performance.now() + 5000;
  while ((statOf(share.pid)[0] === "T") !== stands) {
    if (performance.now() > deadline) throw new Error(`the share does ${stands ? "not " : ""}stand still`);
    await Bun.sleep(1);
  }
}

/** Of files that a guest may make, in bytes. */
const LARGEST = 1024 ** 2;

const mayWrite = () => !/^Max file size\s+0 /m.test(readFileSync(`/proc/${share.pid}/limits`, "utf8"));

/** The ignored signal is set by env, shortly after the process is there. */
async function untilReady({ pid } = share): Promise<void> {
  while (!readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith("sleep")) await Bun.sleep(1);
}

test("a held share responds during a call of QEMU, writes nothing, and is held again afterwards", async () => {
  await untilReady();
  const restraints = new Throttle();
  restraints.set(share, "held", LARGEST);
  await untilStands(true);
  await restraints.answering(share, async () => {
    await untilStands(false);
    expect(mayWrite()).toBe(false);
    // A concurrent request changes nothing, even if it finishes first.
    await restraints.answering(share, () => untilStands(false));
    await untilStands(false);
  });
  await untilStands(true);
  await expect(restraints.answering(share, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  await untilStands(true);
  restraints.set(share, "open", LARGEST);
  await untilStands(false);
  expect(mayWrite()).toBe(true);
});

test("an open share creates files up to a size limit, or of any size without one", async () => {
  await untilReady();
  const restraints = new Throttle();
  const largest = () => /^Max file size\s+(\S+)/m.exec(readFileSync(`/proc/${share.pid}/limits`, "utf8"))?.[1];
  const atFirst = largest();
  restraints.set(share, "open", LARGEST);
  expect(largest()).toBe(String(LARGEST));
  restraints.set(share, "stopped", LARGEST);
  expect(largest()).toBe("0");
  restraints.set(share, "open", Number.POSITIVE_INFINITY);
  expect(largest()).toBe(atFirst);
});

test("a mode set during a response applies afterwards", async () => {
  await untilReady();
  const restraints = new Throttle();
  await restraints.answering(share, async () => {
    restraints.set(share, "held", LARGEST);
    expect(mayWrite()).toBe(false);
    await untilStands(false);
  });
  await untilStands(true);
  await restraints.answering(share, async () => restraints.set(share, "open", LARGEST));
  await untilStands(false);
  expect(mayWrite()).toBe(true);
});

test("a share held by an earlier daemon is woken, and still writes nothing", async () => {
  await untilReady();
  new Throttle().set(share, "held", LARGEST);
  await untilStands(true);
  wake(share);
  await untilStands(false);
  expect(mayWrite()).toBe(false);
  wake({ ...share, start_ticks: "1" });
});

test("the mode set by an earlier daemon is detected", async () => {
  await untilReady();
  const restraints = new Throttle();
  expect(modeFound(share)).toBe("open");
  restraints.set(share, "stopped", LARGEST);
  expect(modeFound(share)).toBe("stopped");
  restraints.set(share, "held", LARGEST);
  await untilStands(true);
  expect(modeFound(share)).toBe("held");
  wake(share);
  await untilStands(false);
  expect(modeFound(share)).toBe("stopped");
  restraints.set(share, "open", LARGEST);
  expect(modeFound(share)).toBe("open");
});

test("a share is paused until the work is done; concurrent calls wait, and it keeps the mode that they set", async () => {
  await untilReady();
  const restraints = new Throttle();
  restraints.set(share, "open", LARGEST);
  const seen: string[] = [];
  const result = await restraints.still(
    () => [share],
    async () => {
      await untilStands(true);
      restraints.set(share, "stopped", LARGEST);
      const asking = restraints.answering(share, async () => void seen.push("asked"));
      await Bun.sleep(20);
      await untilStands(true);
      seen.push("still");
      return { asking };
    },
  );
  await result.asking;
  await untilStands(false);
  expect([seen, mayWrite()]).toEqual([["still", "asked"], false]);
  const failing = restraints.still(
    () => [share],
    () => Promise.reject(new Error("no")),
  );
  await expect(failing).rejects.toThrow("no");
  await untilStands(false);
});

test("a held share stays so after a pause, and a share added in the meantime is reported", async () => {
  await untilReady();
  const restraints = new Throttle();
  restraints.set(share, "held", LARGEST);
  await restraints.still(
    () => [share],
    () => untilStands(true),
  );
  await untilStands(true);
  const shares: ProcessRecord[] = [];
  const work = async () => void shares.push(share);
  await expect(restraints.still(() => [...shares], work)).rejects.toThrow(DeadlineError);
});

test("if a share cannot get its mode, the others continue, and so does the waiting call", async () => {
  await untilReady();
  const restraints = new Throttle();
  const other = Bun.spawn(["/usr/bin/env", "--ignore-signal=XFSZ", "sleep", "300"]);
  try {
    const first = { pid: other.pid, start_ticks: statOf(other.pid)[19] ?? "" };
    await untilReady(first);
    let asking: Promise<void> | null = null;
    const failing = restraints.still(
      () => [first, share],
      async () => {
        // A size that the kernel does not accept.
        restraints.set(first, "open", 0.5);
        asking = restraints.answering(first, async () => {});
      },
    );
    await expect(failing).rejects.toThrow(RangeError);
    await untilStands(false);
    await asking;
    await restraints.still(
      () => [first, share],
      async () => restraints.set(first, "open", LARGEST),
    );
  } finally {
    other.kill("SIGKILL");
    await other.exited;
  }
});
