/** Computations for templates in the aside thread. */
import { MAX_DOCKERFILE_BYTES } from "../../../shared/api/template-builds.ts";
import type { Task } from "../../host/aside/task.ts";
import { type Dockerfile, readDockerfile } from "./dockerfile/read.ts";
import type { Variables } from "./dockerfile/tokens.ts";

/** Variables of 64 arguments. */
const MAX_ARGS_CHARACTERS = 64 * (128 + 4096);

interface DockerfileInput {
  dockerfile: string;
  args: Variables;
}

/** The image that a Dockerfile starts from. Parsing takes up to 0.6 ms per KiB. Throws validation_failed. */
export const readImage: Task<DockerfileInput, Pick<Dockerfile, "from" | "name">> = {
  name: "dockerfile.image",
  bytesOf: ({ dockerfile, args }) =>
    Object.entries(args).reduce((sum, [name, value]) => sum + name.length + value.length, dockerfile.length),
  mostBytes: MAX_DOCKERFILE_BYTES + MAX_ARGS_CHARACTERS,
  smallBytes: 4 * 1024,
  run: ({ dockerfile, args }) => {
    const { from, name } = readDockerfile(dockerfile, args);
    return { from, name };
  },
};

export const templateTasks = [readImage];
