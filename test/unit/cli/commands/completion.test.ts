/** The completion scripts, called as their shells call them: they offer exactly the program's commands and options. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { run, scratch } from "../cli-fixture.ts";

interface Known {
  words: string;
  commands: { word: string }[];
  options: { flags: string[]; choices: string[] }[];
}

const SHELLS = ["bash", "zsh", "fish"];
const known = async (): Promise<Known[]> => JSON.parse((await run(["completion", "bash", "--json"])).stdout).commands;

/** Candidates that bash offers for each line, with its cursor at the end. Lines are split as bash does: `=` is a separate word. */
async function inBash(lines: string[]): Promise<string[][]> {
  const { stdout: script } = await run(["completion", "bash"]);
  const commands = lines.map((line) => {
    const words = line.split(/(=)| /).filter((word) => word !== undefined);
    const quoted = words.filter((word, at) => word !== "" || at === words.length - 1).map((word) => `'${word}'`);
    return `COMP_WORDS=(${quoted.join(" ")}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _roomd; echo "\${COMPREPLY[*]}"`;
  });
  using dir = scratch();
  // Longer than a command line may be.
  const file = join(dir.path, "script");
  await Bun.write(file, [script, ...commands].join("\n"));
  // No files complete a line there.
  using empty = scratch();
  const bash = Bun.spawn(["bash", "-eu", file], { cwd: empty.path, stdout: "pipe", stderr: "pipe" });
  const [status, printed, errors] = await Promise.all([bash.exited, bash.stdout.text(), bash.stderr.text()]);
  expect([status, errors]).toEqual([0, ""]);
  return printed
    .trimEnd()
    .split("\n")
    .map((line) => line.split(" ").filter(Boolean).sort());
}

test("bash offers every command and option in its place", async () => {
  const commands = await known();
  expect(commands.length).toBeGreaterThan(50);
  const lines = commands.flatMap(({ words }) =>
    [`roomd ${words} `, `roomd ${words} -`].map((l) => l.replace("  ", " ")),
  );
  const expected = commands.flatMap(({ words, commands: below, options }) => [
    words === "completion" ? [...SHELLS] : below.map(({ word }) => word),
    options.flatMap(({ flags }) => flags),
  ]);
  // A line at the end with something to offer, so that no empty one is trimmed away.
  const offered = await inBash([...lines, "roomd ro"]);
  expect(offered).toEqual([...expected.map((words) => words.sort()), ["room"]]);
});

test("bash offers the values of options, and nothing after an option with a free value", async () => {
  const offered = await inBash([
    "roomd room list --state ",
    "roomd room list --state=dest",
    "roomd key create --scope drive:",
    "roomd room list --limit -",
    "roomd exec build-42 worker-1 -- -",
    "roomd sandbox create room list --wait n",
    "roomd nonsense",
    "roomd usage --group-by d",
  ]);
  expect(offered).toEqual([
    ["active", "destroyed", "destroying"],
    ["destroyed", "destroying"],
    ["drive:read", "drive:write"],
    [],
    [],
    ["none"],
    [],
    ["day"],
  ]);
});

test.for(SHELLS)("%s reports no error in its script", async (shell, context) => {
  if (Bun.which(shell) === null) return context.skip(`${shell} is not on this host`);
  using dir = scratch();
  const file = join(dir.path, "script");
  await Bun.write(file, (await run(["completion", shell])).stdout);
  const checked = Bun.spawn([shell, "-n", file], { stdout: "pipe", stderr: "pipe" });
  expect([await checked.exited, await checked.stderr.text()]).toEqual([0, ""]);
});

test("fish offers the same", async (context) => {
  if (Bun.which("fish") === null) return context.skip("fish is not on this host");
  const { stdout: script } = await run(["completion", "fish"]);
  const ask = "complete -C 'roomd room '; complete -C 'roomd room list --state '";
  using dir = scratch();
  const file = join(dir.path, "script");
  await Bun.write(file, `${script}\n${ask}`);
  const fish = Bun.spawn(["fish", "-N", file], { stdout: "pipe" });
  const words = (await fish.stdout.text())
    .trim()
    .split("\n")
    .map((line) => line.split("\t")[0]);
  const expected = ["active", "create", "destroy", "destroyed", "destroying", "get", "list", "update"];
  expect(words).toEqual(expect.arrayContaining(expected));
});
