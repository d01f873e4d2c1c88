/** Owns what git fetches in tests, as files that any web server can serve. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A repository for `git clone URL/tiny.git`, with one file. */
export function writeGitMirror(root: string): void {
  const work = mkdtempSync(join(tmpdir(), "roomd-mirror-"));
  try {
    writeFileSync(join(work, "README"), "tiny\n");
    run(work, "git", "init", "--quiet", "--initial-branch=main");
    run(work, "git", "add", "README");
    run(work, "git", "-c", "user.name=t", "-c", "user.email=t@t.example", "commit", "--quiet", "-m", "first");
    run(work, "git", "clone", "--quiet", "--bare", work, join(root, "tiny.git"));
    run(join(root, "tiny.git"), "git", "update-server-info");
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function run(cwd: string, command: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command}: ${stderr || error}`);
}
