/** The start of a command on this host: its environment, and how its end and its refusal are reported. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { signalName } from "../../../../guest-agent/exec/process-group.ts";
import { type CommandLine, spawn } from "../../../../guest-agent/exec/spawn.ts";
import { ROOT } from "../../../../guest-agent/exec/user.ts";
import * as libc from "../../../../guest-agent/libc.ts";
import { adopting } from "../reaper-fixture.ts";

const ENV = { PATH: "/usr/bin:/bin" };

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-spawn-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const lineOf = (argv: string[], line: Partial<CommandLine> = {}): CommandLine => ({
  ...{ argv, user: ROOT, cwd: directory, env: ENV, stdin: false, cgroup: null },
  ...line,
});

/** Runs it to its end; returns its output. */
async function run(argv: string[], line: Partial<CommandLine> = {}) {
  const command = spawn(lineOf(argv, line));
  if ("reason" in command) return command;
  const output = new Response(Bun.file(command.stdout).stream()).text();
  const errors = new Response(Bun.file(command.stderr).stream()).text();
  const { exit_code, signal } = await adopting.adopt(command.pid);
  const printed = { stdout: await output, stderr: await errors };
  for (const fd of [command.stdout, command.stderr]) libc.close(fd);
  return { exit_code, signal: signalName(signal), ...printed };
}

/** The lowest that are free. */
function nextDescriptors(): libc.Pipe {
  const ends = libc.pipe();
  for (const fd of [ends.read, ends.write]) libc.close(fd);
  return ends;
}

test("a command has the given arguments, environment and directory", async () => {
  const words = ["one two", "", "täglich 🙂", "-"];
  const script = `for word; do printf '<%s>' "$word"; done; pwd; printf '%s|' "$FIRST" "$LAST"`;
  const env = { ...ENV, FIRST: "ü = 1", LAST: "" };
  expect(await run(["sh", "-c", script, "name", ...words], { env })).toEqual({
    ...{ exit_code: 0, signal: null, stderr: "" },
    stdout: `${words.map((word) => `<${word}>`).join("")}${directory}\nü = 1||`,
  });
});

test("an unusual number of arguments all arrive", async () => {
  const words = Array.from({ length: 3000 }, (_, index) => `word ${index} ${"ä".repeat(20)}`);
  expect(await run(["printf", "%s\\n", ...words])).toMatchObject({ exit_code: 0, stdout: `${words.join("\n")}\n` });
});

test("its end is reported by exit code or by the name of a signal", async () => {
  expect(await run(["sh", "-c", "echo bad >&2; exit 7"])).toMatchObject({
    exit_code: 7,
    signal: null,
    stderr: "bad\n",
  });
  expect(await run(["sh", "-c", "kill -KILL $$"])).toMatchObject({ exit_code: null, signal: "SIGKILL" });
  expect(await run(["sh", "-c", "kill -40 $$"])).toMatchObject({ exit_code: null, signal: "SIG40" });
});

test("it leads a session of its own, with three descriptors, default signals and empty input", async () => {
  const { stdout } = (await run(["sh", "-c", "cut -d' ' -f1,6 /proc/$$/stat; exec ls -m /proc/self/fd"])) as {
    stdout: string;
  };
  expect(stdout).toMatch(/^(\d+) \1\n0, 1, 2, 3\n$/);
  const signals = (await run(["grep", "^Sig[BI]", "/proc/self/status"])) as { stdout: string };
  expect(signals.stdout.replaceAll(/0{16}/g, "none")).toBe("SigBlk:\tnone\nSigIgn:\tnone\n");
  expect(await run(["cat"])).toMatchObject({ exit_code: 0, stdout: "" });
});

test("a command that cannot run is refused as by a shell, and leaves no descriptor open", async () => {
  writeFileSync(join(directory, "no-format"), "\u0001", { mode: 0o755 });
  writeFileSync(join(directory, "no-interpreter"), "#!/no/such\n", { mode: 0o755 });
  const before = nextDescriptors();
  expect(await run(["./no-format"])).toEqual({ exitCode: 126, reason: "Exec format error" });
  expect(await run(["./no-interpreter"])).toEqual({ exitCode: 127, reason: "not found" });
  expect(await run(["sh", "-c", "", "x".repeat(200_000)])).toEqual({ exitCode: 126, reason: "Argument list too long" });
  expect(await run(["no-such-program"])).toEqual({ exitCode: 127, reason: "not found" });
  expect(nextDescriptors()).toEqual(before);
});
