/** Owns the processors: those that are plugged in come offline, and there is no udev here to bring them into use. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const FOLDER = "/sys/devices/system/cpu";
/** Hotplug ends well after the host's command for it. */
const DEADLINE_MS = 10_000;
const LOOK_EVERY_MS = 5;

/** Resolves once `count` processors are in use. */
export async function useCpus(count: number): Promise<void> {
  const giveUpAt = performance.now() + DEADLINE_MS;
  while (bringIntoUse() < count) {
    if (performance.now() > giveUpAt) throw new Error(`no ${count} processors after ${DEADLINE_MS} ms`);
    await sleep(LOOK_EVERY_MS);
  }
}

/** Brings into use what is there; returns how many are. */
function bringIntoUse(): number {
  let inUse = 0;
  for (const name of readdirSync(FOLDER).filter((name) => /^cpu\d+$/.test(name))) {
    const online = `${FOLDER}/${name}/online`;
    // The first processor has no such file: it is always in use.
    if (name !== "cpu0" && readFileSync(online, "utf8").trim() === "0") writeFileSync(online, "1");
    inUse++;
  }
  return inUse;
}
