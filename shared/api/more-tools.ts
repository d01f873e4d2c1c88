/** Owns the tools that are served beside the usual ones to clients that ask for all: more than most models need in every list that they pay for. */
import { Type } from "@sinclair/typebox";
import { fields } from "./contract.ts";
import { operations } from "./operations.ts";
import { templateCreate } from "./template-builds.ts";
import { continued, HINTS, type Tool, tool } from "./tool.ts";
import { MAX_TOOL_WAIT_MS, TOOLS } from "./tools.ts";

const { LOOKS, ADDS, REPEATS } = HINTS;

const { screenshot_b64: _, ...used } = operations.computer.output.properties;
const wait_ms = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: MAX_TOOL_WAIT_MS,
    description: "Longest wait for its end; 45 000 if absent.",
  }),
);

const list: readonly Tool[] = [
  tool({
    operation: operations.computer,
    title: "Use a screen",
    about:
      "Does one thing at a sandbox's screen, with its keyboard or its mouse, and shows a picture of what came of it, as an image beside the answer. Sandboxes of the template desktop have a screen. Coordinates are those of the picture that you see: send the same width with every call.",
    next: "look at the picture, then the same tool for what is next.",
    example: { room_id: "build-42", sandbox: "worker-1", action: "left_click", coordinate: [640, 400], width: 1280 },
    result: fields(used),
    hints: { ...ADDS, destructiveHint: true, openWorldHint: true },
  }),
  tool({
    name: "browser",
    operation: operations.browser_get,
    title: "Reach a browser",
    about:
      "Tells where Playwright and Puppeteer connect to the Chromium of a sandbox, and with which headers. Sandboxes of the template browser have one. Whoever has both can do everything in it: pass them to your own program only.",
    next: "connect with chromium.connectOverCDP(cdp_url, {headers}), in a sandbox or where you are.",
    example: { room_id: "build-42", sandbox: "worker-1" },
    hints: { ...REPEATS, openWorldHint: true },
  }),
  tool({
    operation: operations.template_list,
    title: "List templates",
    about: "Lists what sandboxes can be made of: the host's templates, and those of the organization.",
    next: "sandbox_create with template_id.",
    example: {},
    hints: LOOKS,
  }),
  tool({
    name: "template_build",
    operation: operations.template_create,
    title: "Build a template",
    about:
      "Builds a template for the organization: of an image, of a recipe with steps, or of a Dockerfile, and waits for its end. Steps reach only what egress_allowlist says. After 45 s the answer is the build as it is, with what it has told so far. Where it fails, failure says at which step, and with which last lines.",
    next: "when `next` is there, make that call: it goes on with what the build tells, and never begins another. Then sandbox_create with template_id.",
    example: {
      template_id: "pytest",
      from: { recipe: { from: "docker://registry.example.com/python:3.13-slim", steps: ["pip install pytest"] } },
      egress_allowlist: ["packages.example.com:443"],
    },
    also: {
      from: Type.Optional({
        ...templateCreate.body.properties.from,
        description: "What it is made of: one of image, recipe and dockerfile.",
      }),
      build_id: Type.Optional(
        Type.String({ maxLength: 64, description: "The build to go on with. Nothing but template_id goes with it." }),
      ),
      after: Type.Optional(
        Type.Integer({
          minimum: -1,
          maximum: Number.MAX_SAFE_INTEGER,
          description: "The last of its events that you have, from `next`.",
        }),
      ),
      wait_ms,
    },
    result: continued(
      fields({
        ...templateCreate.output.properties,
        told: Type.Array(Type.String(), { description: "What it has told since `after`, the last lines of it." }),
      }),
    ),
    hints: { ...ADDS, openWorldHint: true },
  }),
];

const usual = TOOLS;
const all: ReadonlyMap<string, Tool> = new Map([...usual, ...list.map((each) => [each.name, each] as const)]);

/** What a client finds by which path. */
export const TOOL_SETS = {
  usual: { path: "/mcp", tools: usual },
  all: { path: "/mcp/all", tools: all },
} as const;
export type ToolSet = keyof typeof TOOL_SETS;
