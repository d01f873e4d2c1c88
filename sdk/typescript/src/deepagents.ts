/** A sandbox as a backend of deepagents: its tools for files and commands work in it. */
import { BaseSandbox, type ExecuteResponse, type FileDownloadResponse, type FileUploadResponse } from "deepagents";
import { ProblemError } from "./errors.ts";
import type { Sandbox } from "./sandbox.ts";

/** Limit of one command's output; the rest is dropped. */
const MAX_OUTPUT_BYTES = 1024 * 1024;
const ERRORS: Record<string, NonNullable<FileUploadResponse["error"]>> = {
  path_not_found: "file_not_found",
  is_directory: "is_directory",
  already_exists: "invalid_path",
  invalid_path: "invalid_path",
};

/** The sandbox's creator has to destroy it. */
export class RoomdBackend extends BaseSandbox {
  readonly id: string;
  readonly #sandbox: Sandbox;

  constructor(sandbox: Sandbox) {
    super();
    this.id = `${sandbox.roomId}/${sandbox.agentId}`;
    this.#sandbox = sandbox;
  }

  override async execute(command: string): Promise<ExecuteResponse> {
    const output: Uint8Array[] = [];
    let left = MAX_OUTPUT_BYTES;
    let truncated = false;
    const { exitCode } = await this.#sandbox.exec(command, {
      maxOutputBytes: 0,
      onOutput: (_, bytes) => {
        output.push(bytes.subarray(0, left));
        truncated ||= bytes.byteLength > left;
        left = Math.max(0, left - bytes.byteLength);
      },
    });
    return { output: Buffer.concat(output).toString(), exitCode, truncated };
  }

  override uploadFiles(files: [string, Uint8Array][]): Promise<FileUploadResponse[]> {
    return Promise.all(
      files.map(async ([path, content]) => {
        const error = await this.#sandbox.files.write(path, content).then(() => null, errorOf);
        return { path, error };
      }),
    );
  }

  override downloadFiles(paths: string[]): Promise<FileDownloadResponse[]> {
    return Promise.all(
      paths.map(async (path) => {
        try {
          const content = await this.#sandbox.files.read(path);
          return { path, content, error: null };
        } catch (error) {
          return { path, content: null, error: errorOf(error) };
        }
      }),
    );
  }
}

/** The error of deepagents for an invalid path. Rethrows all other errors. */
function errorOf(error: unknown): NonNullable<FileUploadResponse["error"]> {
  const known = error instanceof ProblemError ? ERRORS[error.code] : undefined;
  if (known === undefined) throw error;
  return known;
}
