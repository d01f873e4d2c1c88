/** A template build in another process: setup shows its progress and waits for its end. */
import { existsSync, readFileSync } from "node:fs";
import type { Paths } from "../../../core/config/paths.ts";

const LOOK_MS = 500;

/** Resolves after the process that holds the lock for builds has ended. Shows that build's output so far and from now on. */
export async function untilBuildEnds(
  { build_lock, build_progress }: Pick<Paths, "build_lock" | "build_progress">,
  note: (line: string) => void,
  lookMs = LOOK_MS,
): Promise<void> {
  const builder = Number(textOf(build_lock));
  let shown = 0;
  const show = () => {
    const lines = textOf(build_progress).split("\n").slice(0, -1);
    for (const line of lines.slice(shown)) note(line);
    shown = Math.max(shown, lines.length);
  };
  for (show(); isAlive(builder); show()) await Bun.sleep(lookMs);
}

const textOf = (file: string) => (existsSync(file) ? readFileSync(file, "utf8") : "");

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
