/** Ids of a process's user namespace: written by the daemon, which may, so that no setuid program has to. */
import { readlinkSync, writeFileSync } from "node:fs";
import { monotonicMs, sleep } from "../../core/clock.ts";
import { DeadlineError } from "../../core/concurrency/published.ts";
import { DRIVE_RANGE } from "./ids.ts";

/** Poll interval for the process's namespace: well under its start time. */
const LOOK_EVERY_MS = 1;
const DEADLINE_MS = 10_000;

/** Maps users and groups 0 to 65535 of the process's namespace to those from `root` on. Throws when the process gets no namespace. */
export async function mapIds(pid: number, root: number, ended: Promise<string>): Promise<void> {
  let how: string | null = null;
  ended.then((text) => {
    how = text;
  });
  const deadline = monotonicMs() + DEADLINE_MS;
  while (namespaceOf(pid) === namespaceOf("self")) {
    if (how !== null) throw new Error(`it got no user namespace and has ended: ${how}`);
    if (monotonicMs() > deadline) throw new DeadlineError(`it had no user namespace after ${DEADLINE_MS} ms`);
    await sleep(LOOK_EVERY_MS);
  }
  for (const ids of ["uid_map", "gid_map"]) writeFileSync(`/proc/${pid}/${ids}`, `0 ${root} ${DRIVE_RANGE}\n`);
}

function namespaceOf(process: number | "self"): string {
  try {
    return readlinkSync(`/proc/${process}/ns/user`);
  } catch {
    return namespaceOf("self");
  }
}
