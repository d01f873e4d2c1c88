/** A sandbox as a session of the AI SDK, with real guests: each of its methods, and a scripted model that works in it by a tool. */
import { generateText, isStepCount, jsonSchema, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { beforeAll, expect, test } from "vitest";
import { sandboxSession } from "../../../sdk/typescript/src/ai-sdk.ts";
import { Roomd } from "../../../sdk/typescript/src/index.ts";
import { until, withGuests } from "../../harness/guests.ts";

type Session = ReturnType<typeof sandboxSession>;

withGuests("the AI SDK", {}, (guests) => {
  let session: Session;
  beforeAll(async () => {
    const roomd = new Roomd({ url: guests.daemon.url, apiKey: guests.daemon.apiKey });
    const room = await roomd.rooms.create();
    session = sandboxSession(await room.createSandbox("worker", { memoryMib: 256 }));
  });

  test("runs commands with the requested directory and environment", async () => {
    const { exitCode, stdout, stderr } = await session.run({
      command: "pwd; echo $WORD; echo wrong >&2; exit 4",
      workingDirectory: "/tmp",
      env: { WORD: "word" },
    });
    expect([exitCode, stdout, stderr]).toEqual([4, "/tmp\nword\n", "wrong\n"]);
    const ended = new AbortController();
    const running = session.run({ command: "touch begun; sleep 600", abortSignal: ended.signal });
    await until("the command has started", async () => await session.stat({ path: "begun" }));
    ended.abort();
    await expect(running).rejects.toMatchObject({ name: "AbortError" });
    expect((await session.run({ command: "pgrep -c sleep" })).stdout).toBe("0\n");
  });

  test("has files: text, bytes, streams, existing and missing", async () => {
    const path = "a dir/it's.txt";
    await session.writeTextFile({ path, content: "one\ntwo\nthree\n" });
    expect(await session.readTextFile({ path })).toBe("one\ntwo\nthree\n");
    expect(await session.readTextFile({ path, startLine: 2, endLine: 2 })).toBe("two");
    expect(await session.stat({ path })).toEqual({ type: "file", size: 14 });
    // More than one part when it is read.
    const bytes = new Uint8Array(9 * 1024 * 1024).map((_, index) => index % 251);
    await session.writeFile({ path: "/tmp/large", content: new Blob([bytes]).stream() });
    expect(Buffer.compare((await session.readBinaryFile({ path: "/tmp/large" })) ?? new Uint8Array(), bytes)).toBe(0);
    let read = 0;
    for await (const part of (await session.readFile({ path: "/tmp/large" })) ?? []) read += part.byteLength;
    expect(read).toBe(bytes.byteLength);
    await session.run({ command: "ln -s /none 'a dir/link'; mkdir 'a dir/below'" });
    const entries = await session.listDirectory({ path: "a dir" });
    expect(entries?.map(({ name, type }) => `${name} ${type}`).sort()).toEqual([
      "below directory",
      "it's.txt file",
      "link symlink",
    ]);
    for (const nothing of [
      session.readFile({ path: "/none" }),
      session.readTextFile({ path: "/none" }),
      session.stat({ path: "/none" }),
      session.listDirectory({ path: "/none" }),
    ]) {
      expect(await nothing).toBeNull();
    }
    expect([await session.deleteFile({ path }), await session.deleteFile({ path })]).toEqual([true, false]);
    await expect(session.deleteFile({ path: "a dir" })).rejects.toThrow("Is a directory");
    await expect(session.writeTextFile({ path: "/tmp", content: "" })).rejects.toMatchObject({ code: "is_directory" });
    await expect(session.listDirectory({ path: "/etc/passwd" })).rejects.toMatchObject({ status: 422 });
  });

  test("spawns processes: write, read, wait and kill", async () => {
    const { stdin, stdout, wait } = await session.spawn({ command: "sort; exit 5", stdin: true });
    const writer = stdin.getWriter();
    for (const line of ["b\n", "a\n"]) await writer.write(new TextEncoder().encode(line));
    await writer.close();
    expect(await new Response(stdout).text()).toBe("a\nb\n");
    expect(await wait()).toEqual({ exitCode: 5 });
    const endless = await session.spawn({ command: "sleep 600" });
    await endless.kill();
    await endless.kill();
    expect((await endless.wait()).exitCode).toBeGreaterThan(128 - 1);
  });

  test("provides the environment of a model's tools", async () => {
    const usage = {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    };
    const call = (toolCallId: string, command: string) => ({
      content: [{ type: "tool-call" as const, toolCallId, toolName: "bash", input: JSON.stringify({ command }) }],
      finishReason: { unified: "tool-calls" as const, raw: undefined },
      usage,
      warnings: [],
    });
    const reply = {
      content: [{ type: "text" as const, text: "It is done." }],
      finishReason: { unified: "stop" as const, raw: undefined },
      usage,
      warnings: [],
    };
    const model = new MockLanguageModelV4({
      doGenerate: [call("1", "echo 42 >/mnt/drive/answer"), call("2", "cat /mnt/drive/answer"), reply],
    });
    const bash = tool({
      description: "Runs a command in the sandbox.",
      inputSchema: jsonSchema<{ command: string }>({
        type: "object",
        properties: { command: { type: "string" } },
        required: ["command"],
      }),
      execute: ({ command }, { experimental_sandbox }) => experimental_sandbox?.run({ command }),
    });
    const { text, steps } = await generateText({
      model,
      tools: { bash },
      prompt: "What is the answer?",
      stopWhen: isStepCount(5),
      experimental_sandbox: session,
    });
    expect(text).toBe("It is done.");
    expect(steps[1]?.toolResults[0]?.output).toEqual({ exitCode: 0, stdout: "42\n", stderr: "" });
  });
});
