/** A sandbox as a backend of deepagents, with real guests: the operations that its tools use, and a scripted model that works with them. */
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { createDeepAgent } from "deepagents";
import { beforeAll, expect, test } from "vitest";
import { RoomdBackend } from "../../../sdk/typescript/src/deepagents.ts";
import { Roomd, type Sandbox } from "../../../sdk/typescript/src/index.ts";
import { withGuests } from "../../harness/guests.ts";

interface Call {
  name: string;
  args: Record<string, unknown>;
}

/** Calls these tools, one after another, and then reports that it is done. */
class ScriptedModel extends BaseChatModel {
  readonly #calls: Call[];
  readonly heard: BaseMessage[][] = [];

  constructor(calls: Call[]) {
    super({});
    this.#calls = [...calls];
  }

  override _llmType(): string {
    return "scripted";
  }

  override bindTools(): this {
    return this;
  }

  override async _generate(messages: BaseMessage[]) {
    this.heard.push(messages);
    const call = this.#calls.shift();
    const id = `call-${this.heard.length}`;
    const message = call
      ? new AIMessage({ content: "", tool_calls: [{ ...call, id, type: "tool_call" }] })
      : new AIMessage("It is done.");
    return { generations: [{ text: message.text, message }] };
  }
}

withGuests("deepagents", {}, (guests) => {
  let sandbox: Sandbox;
  let backend: RoomdBackend;
  beforeAll(async () => {
    const roomd = new Roomd({ url: guests.daemon.url, apiKey: guests.daemon.apiKey });
    const room = await roomd.rooms.create();
    sandbox = await room.createSandbox("worker", { memoryMib: 256 });
    backend = new RoomdBackend(sandbox);
  });

  test("runs commands, and reports truncated output", async () => {
    expect(await backend.execute("echo out; echo err >&2; exit 3")).toMatchObject({ exitCode: 3, truncated: false });
    const long = await backend.execute("head -c 3000000 /dev/zero | tr '\\0' x");
    expect([long.output.length, long.truncated]).toEqual([1024 * 1024, true]);
  });

  test("has files, each with its error", async () => {
    const bytes = new TextEncoder().encode("one\ntwo\n");
    expect(await backend.uploadFiles([["/work/a.txt", bytes]])).toEqual([{ path: "/work/a.txt", error: null }]);
    expect(await backend.uploadFiles([["/work", bytes]])).toEqual([{ path: "/work", error: "is_directory" }]);
    const [there, none] = await backend.downloadFiles(["/work/a.txt", "/work/none.txt"]);
    expect(Buffer.from(there?.content ?? []).toString()).toBe("one\ntwo\n");
    expect(none).toEqual({ path: "/work/none.txt", content: null, error: "file_not_found" });
    expect((await backend.grep("two", "/work")).matches).toMatchObject([{ path: "/work/a.txt", line: 2, text: "two" }]);
    expect((await backend.ls("/work")).files?.map(({ path }) => path)).toEqual(["/work/a.txt"]);
  });

  test("provides the environment of a model's tools", { timeout: 120_000 }, async () => {
    const model = new ScriptedModel([
      { name: "write_file", args: { file_path: "/root/answer.py", content: "print(6 * 7)\n" } },
      { name: "edit_file", args: { file_path: "/root/answer.py", old_string: "6 * 7", new_string: "6 * 8" } },
      { name: "execute", args: { command: "python3 /root/answer.py" } },
    ]);
    const agent = createDeepAgent({ model, backend });
    const { messages } = await agent.invoke({ messages: [{ role: "user", content: "Compute it." }] });
    expect(messages.at(-1)?.text).toBe("It is done.");
    expect(messages.at(-2)?.text).toContain("48");
    expect((await sandbox.exec("cat /root/answer.py")).stdout).toBe("print(6 * 8)\n");
  });
});
