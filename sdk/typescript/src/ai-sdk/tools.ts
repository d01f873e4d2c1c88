/** Tools of the AI SDK that work in a sandbox: run a command, read and write a file. For versions 5, 6 and 7, without importing any of them. */
import { exitCodeOf } from "../exit-code.ts";
import { orNull } from "../files.ts";
import type { Sandbox } from "../sandbox.ts";

/** Marks an object made by jsonSchema() for the AI SDK. */
const SCHEMA = Symbol.for("vercel.ai.schema");
/** Limits of one answer, which a model reads: its first and last characters are kept. */
const HEAD_CHARACTERS = 4096;
const TAIL_CHARACTERS = 12_288;

/** A tool as generateText() and streamText() accept it. */
export interface SandboxTool<Input> {
  description: string;
  /** A schema of the AI SDK. */
  inputSchema: never;
  execute: (input: Input, options: { abortSignal?: AbortSignal }) => Promise<string>;
}

/** A type, not an interface: only a type is assignable to a set of tools with arbitrary names. */
export type SandboxTools = {
  run: SandboxTool<{ command: string }>;
  read_file: SandboxTool<{ path: string }>;
  write_file: SandboxTool<{ path: string; content: string }>;
};

/** `tools` of generateText() and streamText(). A command that fails is an answer for the model, not an error. */
export function sandboxTools(sandbox: Sandbox): SandboxTools {
  const { files } = sandbox;
  const signalOf = ({ abortSignal }: { abortSignal?: AbortSignal } = {}) =>
    abortSignal ? { signal: abortSignal } : {};
  return {
    run: {
      description:
        "Run a shell command in a Debian virtual machine in which you are root. Returns its exit code and output.",
      inputSchema: schemaOf({ command: "The command line." }),
      execute: async ({ command }, options) => {
        const done = await sandbox.exec(command, { ...signalOf(options), killOnAbort: true });
        return shortened(`exit code ${exitCodeOf(done)}\n${done.stdout}${done.stderr}`);
      },
    },
    read_file: {
      description: "Read a text file of the virtual machine.",
      inputSchema: schemaOf({ path: "An absolute path. /mnt/drive is shared with other agents." }),
      execute: async ({ path }, options) => {
        const bytes = await orNull(files.read(path, signalOf(options)));
        return bytes === null ? `${path} does not exist.` : shortened(new TextDecoder().decode(bytes));
      },
    },
    write_file: {
      description: "Write a text file of the virtual machine. Missing directories are created.",
      inputSchema: schemaOf({ path: "An absolute path.", content: "The whole text of the file." }),
      execute: async ({ path, content }, options) => {
        await files.write(path, content, signalOf(options));
        return `${path} is written.`;
      },
    },
  };
}

/** The result of jsonSchema() for an object with required string fields only. */
function schemaOf(fields: Record<string, string>): never {
  const names = Object.keys(fields);
  const properties = Object.fromEntries(
    Object.entries(fields).map(([name, description]) => [name, { type: "string", description }]),
  );
  const validate = (value: unknown) => {
    const wrong = names.find((name) => typeof (value as Record<string, unknown> | null)?.[name] !== "string");
    return wrong === undefined
      ? { success: true, value }
      : { success: false, error: new TypeError(`The field ${wrong} must be a string.`) };
  };
  const jsonSchema = { type: "object", properties, required: names, additionalProperties: false };
  return { [SCHEMA]: true, [Symbol.for("vercel.ai.validator")]: true, _type: undefined, jsonSchema, validate } as never;
}

function shortened(text: string): string {
  const left = text.length - HEAD_CHARACTERS - TAIL_CHARACTERS;
  if (left <= 0) return text;
  return `${text.slice(0, HEAD_CHARACTERS)}\n… ${left} characters left out …\n${text.slice(-TAIL_CHARACTERS)}`;
}
