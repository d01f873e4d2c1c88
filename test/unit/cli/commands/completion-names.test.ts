/** Names of rooms, agents and their resources, as the completion scripts get them from a service. */
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { namesFor } from "../../../../daemon/cli/commands/completion-names.ts";
import { makeProgram } from "../../../../daemon/cli/program.ts";
import { BINARY, run, type Seen, scratch, standIn } from "../cli-fixture.ts";

/** Two rooms, in `build-42` two sandboxes, and in each of these one execution. */
function serving(rooms = ["build-42", "bench"]) {
  return standIn(({ path }: Seen) => {
    const items = /executions/.test(path)
      ? [{ exec_id: "exe_01" }]
      : /build-42\/checkpoints/.test(path)
        ? [{ checkpoint_id: "chk_01" }]
        : /build-42\/sandboxes/.test(path)
          ? [
              { agent_id: "worker-1", state: "running" },
              { agent_id: "writer", state: "hibernated" },
              { agent_id: "wgone", state: "destroyed" },
            ]
          : /^\/v1\/rooms\?/.test(path)
            ? rooms.map((room_id) => ({ room_id }))
            : [];
    return Response.json({ items, next_cursor: null });
  });
}

test("each argument is completed with names of its own kind", async () => {
  await using service = await serving();
  const lines: Record<string, string[]> = {
    "exec b": ["build-42", "bench"],
    "exec build-42 w": ["worker-1", "writer"],
    "exec --cwd /x build-42 wo": ["worker-1"],
    "execution get build-42 writer ": ["exe_01"],
    "room restore build-42 ": ["chk_01"],
    "cp report.txt bu": ["build-42:/", "build-42/"],
    "cp build-42/w": ["worker-1", "writer"].map((agent) => `build-42/${agent}:/`),
    "rm build-42 : /x": [],
    "room create b": [],
    "sandbox create build-42 ": [],
    "exec nowhere ": [],
    "nonsense b": [],
  };
  Object.assign(process.env, service.env);
  const program = makeProgram(() => {});
  for (const [line, names] of Object.entries(lines)) {
    expect([line, await namesFor(program, line.split(" "))]).toEqual([line, names]);
  }
});

test("without a response there are no names, no errors, and no long wait", { timeout: 60_000 }, async () => {
  await using silent = await standIn(() => new Promise<Response>(() => {}));
  const refusing = { ROOMD_URL: "http://127.0.0.1:1", ROOMD_API_KEY: "k" };
  const ran = await Promise.all(
    [silent.env, refusing, { ROOMD_URL: silent.url }].map((env) => run(["complete-names", "--", "exec", ""], { env })),
  );
  expect(ran).toEqual(Array(3).fill({ status: 0, stdout: "", stderr: "" }));
});

test.for(["bash", "zsh", "fish"])(
  "%s offers the names without evaluating them",
  { timeout: 60_000 },
  async (shell, context) => {
    if (Bun.which(shell) === null) return context.skip(`${shell} is not on this host`);
    using home = scratch();
    const marker = join(home.path, "evaluated");
    await using service = await serving([
      "build-42",
      "bench",
      `b$(touch ${marker})`,
      `b;touch ${marker}`,
      "b\nbad",
      "b c",
    ]);
    const program = join(home.path, "roomd");
    writeFileSync(program, `#!/bin/sh\nexec '${BINARY}' "$@"\n`);
    chmodSync(program, 0o755);
    const { stdout: script } = await run(["completion", shell]);
    const scripts = {
      bash: [
        "COMP_WORDS=(roomd exec b); COMP_CWORD=2; _roomd; print_replies",
        "COMP_WORDS=(roomd exec build-42 w); COMP_CWORD=3; _roomd; print_replies",
      ],
      // Without a line editor there is no completion: `compadd` is replaced by a stub.
      zsh: [
        'compadd() { [[ $1 == -S ]] && shift 2; shift; print -l -- "$@" }',
        "words=(roomd exec b); CURRENT=3; _roomd; words=(roomd exec build-42 w); CURRENT=4; _roomd",
      ],
      fish: ["complete -C 'roomd exec b'; complete -C 'roomd exec build-42 w'"],
    }[shell] as string[];
    const start = { bash: `print_replies() { printf '%s\\n' "\${COMPREPLY[@]}"; }`, zsh: "compdef() { : }", fish: "" }[
      shell
    ];
    // Longer than a command line may be.
    const file = join(home.path, "script");
    writeFileSync(file, [start, script, ...scripts].join("\n"));
    const flags = { bash: ["-eu"], zsh: ["-f"], fish: ["-N"] }[shell] as string[];
    const child = Bun.spawn([shell, ...flags, file], {
      env: { ...service.env, PATH: `${home.path}:${process.env.PATH}`, HOME: home.path },
      cwd: home.path,
      stdout: "pipe",
      stderr: "pipe",
    });
    const [printed, errors] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    const words = printed.split("\n").flatMap((line) => line.split("\t")[0]?.trim() || []);
    expect([words.sort(), errors]).toEqual([["bench", "build-42", "worker-1", "writer"], ""]);
    expect(existsSync(marker)).toBe(false);
  },
);
