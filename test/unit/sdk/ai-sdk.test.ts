/** The AI SDK adapter with the AI SDK itself: its tools in a model's loop, and its types, which import none of the AI SDK's. */
import { type Experimental_SandboxSession, generateText, isStepCount, type ToolSet } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { expect, test } from "vitest";
import { type SandboxSession, sandboxTools } from "../../../sdk/typescript/src/ai-sdk.ts";
import { Roomd } from "../../../sdk/typescript/src/index.ts";
import { lines, ok, ScriptedService } from "./scripted-service.ts";

/** The compiler checks that a session is one of the AI SDK's. */
const asSession = (session: SandboxSession): Experimental_SandboxSession => session;

test("its session has the AI SDK's type", () => {
  expect(asSession).toBeTypeOf("function");
});

test("a model calls its tools, and receives the name of an invalid field", async () => {
  const output = { type: "stdout", seq: 1, data_b64: btoa("x".repeat(50_000)) };
  const service = await ScriptedService.start(({ path }) =>
    path.includes("/stream")
      ? lines(output, { type: "exit", seq: 2, duration_ms: 1, exit_code: 3, signal: null, timed_out: false })
      : ok({ exec_id: "exe_1" }),
  );
  const tools: ToolSet = sandboxTools(new Roomd({ url: service.url }).rooms.open("a").sandbox("w"));
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const call = (toolCallId: string, input: object) => ({
    content: [{ type: "tool-call" as const, toolCallId, toolName: "run", input: JSON.stringify(input) }],
    finishReason: { unified: "tool-calls" as const, raw: undefined },
    usage,
    warnings: [],
  });
  const done = {
    content: [{ type: "text" as const, text: "It is done." }],
    finishReason: { unified: "stop" as const, raw: undefined },
    usage,
    warnings: [],
  };
  const model = new MockLanguageModelV4({ doGenerate: [call("1", { cmd: "ls" }), call("2", { command: "ls" }), done] });
  try {
    const { text, steps } = await generateText({ model, tools, prompt: "Look.", stopWhen: isStepCount(5) });
    expect(text).toBe("It is done.");
    expect(JSON.stringify(steps[0]?.content)).toMatch(/\bcommand\b/);
    const answer = String(steps[1]?.toolResults[0]?.output);
    expect(answer).toMatch(/^.* 3\nx+\n… \d+ .* …\nx+$/);
    expect(answer.length).toBeLessThan(17_000);
    const offered = model.doGenerateCalls[0]?.tools?.map((each) => each.name);
    expect(offered).toEqual(["run", "read_file", "write_file"]);
    expect(JSON.parse(service.asked.find(({ method }) => method === "POST")?.body ?? "{}")).toMatchObject({
      command: "ls",
    });
  } finally {
    await service.stop();
  }
});
