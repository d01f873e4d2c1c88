/**
 * An agent without a model: it knows a server only by its list of tools and their schemas. It fills a tool's arguments by name from the
 * values that it has, never sends anything that the schema forbids, and learns from the answers.
 */
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { Json } from "../daemon.ts";
import type { McpClient } from "./mcp-client.ts";

const MAX_CALLS = 200;

export class ModelFreeAgent {
  readonly #client: McpClient;
  readonly #tools: Map<string, Json>;
  readonly #ajv = addFormats.default(new Ajv2020({ strict: false, allErrors: true }));
  /** Values that it may use as arguments, by name. */
  readonly #known: Record<string, unknown>;
  /** Tools that succeeded, and tools that refused a call. */
  readonly succeeded = new Set<string>();
  readonly refused = new Set<string>();

  private constructor(client: McpClient, tools: Json[], known: Record<string, unknown>) {
    this.#client = client;
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.#known = known;
  }

  static async meet(client: McpClient, known: Record<string, unknown>): Promise<ModelFreeAgent> {
    return new ModelFreeAgent(client, (await client.listTools()).tools, { ...known });
  }

  /** Calls a tool until there is no `next` call, or `enough` returns true; returns the results in order. Throws if the tool refuses. */
  async use(name: string, args: Record<string, unknown> = {}, enough = (result: Json) => !isGoingOn(result)) {
    const results: Json[] = [];
    let next: Json = { tool: name, arguments: { ...this.#required(name), ...args } };
    while (next) {
      const result = await this.#call(next.tool, next.arguments);
      results.push(result);
      if (results.length > MAX_CALLS) throw new Error(`${name} does not come to an end`);
      next = enough(result) ? null : result.next;
    }
    return results;
  }

  /** A call that must be refused, whether or not its arguments match the schema; returns the refusal. */
  async misuse(name: string, args: Record<string, unknown>): Promise<Json> {
    const answer = await this.#answerOf(name, args);
    if (answer.ok) throw new Error(`${name} did what it should refuse: ${JSON.stringify(answer)}`);
    this.refused.add(name);
    return answer;
  }

  async #call(name: string, args: Record<string, unknown>): Promise<Json> {
    this.#require(this.#toolOf(name).inputSchema, args, `arguments of ${name}`);
    const answer = await this.#answerOf(name, args);
    if (!answer.ok) throw new Error(`${name}: ${JSON.stringify(answer)}`);
    this.succeeded.add(name);
    return answer.result;
  }

  async #answerOf(name: string, args: Record<string, unknown>): Promise<Json> {
    const answer = await this.#client.call(name, args);
    this.#require(this.#toolOf(name).outputSchema, answer, `answer of ${name}`);
    return answer;
  }

  #required(name: string): Record<string, unknown> {
    const { required = [] } = this.#toolOf(name).inputSchema;
    return Object.fromEntries(
      required.flatMap((each: string) => (each in this.#known ? [[each, this.#known[each]]] : [])),
    );
  }

  #toolOf(name: string): Json {
    const tool = this.#tools.get(name);
    if (!tool) throw new Error(`there is no tool ${name}`);
    return tool;
  }

  #require(schema: object, value: unknown, label: string): void {
    if (!this.#ajv.validate(schema, value)) throw new Error(`${label}: ${this.#ajv.errorsText()}`);
  }
}

/** Something is still to come: `next` alone is also an offer, as of an inbox. */
function isGoingOn({ state, next }: Json): boolean {
  return next !== undefined && ["starting", "running", "waiting"].includes(state);
}
