/** template_create: checks an organization's build request, and starts the build. */
import type { InputOf } from "../../../../shared/api/contract.ts";
import { MAX_BUILDS, templateCreate } from "../../../../shared/api/template-builds.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { isBase64 } from "../../../core/base64.ts";
import { type Bound, bind, keyBehind, type RuleBreak } from "../../../core/call/operation.ts";
import { inPieces, loopTime, ownerOf, Pieces } from "../../../core/loop/index.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { templateWarnings } from "../../orgs/index.ts";
import { registryOf } from "../image/reference.ts";
import { requireLeft, templateMib } from "../org-disk.ts";
import { OF_IMAGE } from "../recipe.ts";
import { unfinishedBuilds } from "../store.ts";
import { readImage } from "../tasks.ts";
import type { BuildsDeps } from "./deps.ts";
import type { Builds, OrgOrder } from "./queue.ts";
import { requireWhole, toBuildRecord } from "./record.ts";

type Input = InputOf<typeof templateCreate>;

const ROOTS = ["image", "recipe", "dockerfile"] as const;
const MIN_MIB = 256;
const DEFAULT_MIB = 512;
const DISK_MIB = 8192;

export function makeAsk(deps: BuildsDeps, builds: Builds): Bound {
  return bind(templateCreate, {
    find: (call) => {
      requireWhole(call);
      return call.caller.org_id;
    },
    rules: async (input, orgId, bad) => {
      // A field with an invalid shape is reported as such only.
      const isShaped = !bad.some(({ field }) => /^(from|build_args)\b/.test(field));
      const ofRoot = isShaped ? await rootRules(deps, input, orgId) : [];
      return [...ofRoot, ...useRules(input), ...deps.egressRules(input.egress_allowlist)];
    },
    run: async (call, input) => {
      const { caller, work, audit } = call;
      const order = orderOf(input, caller.org_id);
      const used = await templateMib(deps.paths, caller.org_id);
      const { row, body } = await deps.database.commit((queries) => {
        admit(deps, queries, order);
        const caps = deps.capsOf(caller.org_id);
        requireLeft(used, caps);
        deps.requireMemory(queries, caller.org_id, input.min_memory_mib ?? MIN_MIB);
        const warnings = templateWarnings(used, caps);
        const row = builds.accept(queries, order);
        audit.details = { template_id: row.template_id, build_id: row.build_id };
        const body = { ...toBuildRecord(row), ...(warnings.length > 0 && { warnings }) };
        work.keep("accepted", body);
        return { row, body };
      });
      builds.begin(row, order, keyBehind(caller));
      return { outcome: "accepted", body };
    },
  });
}

/** Throws already_exists, quota_exceeded. */
function admit({ templates, most }: BuildsDeps, queries: Queries, { org_id, template_id }: OrgOrder): void {
  const unfinished = unfinishedBuilds(queries, org_id);
  const same = unfinished.find((each) => each.template_id === template_id);
  if (same) {
    throw new ServiceError("already_exists", {
      detail: `Template ${template_id} is being built.`,
      details: { build_id: same.build_id },
      hint: "Follow the running build, or end it first.",
    });
  }
  if (unfinished.length >= MAX_BUILDS) {
    throw new ServiceError("quota_exceeded", {
      detail: `${MAX_BUILDS} builds of the organization are in progress, which is the maximum.`,
      details: { limit: "template_builds", used: unfinished.length, cap: MAX_BUILDS },
      hint: "Wait until one of them has ended.",
    });
  }
  const own = templates.list(org_id).flatMap(({ owner, record }) => (owner === null ? [] : record.template_id));
  const all = new Set([...own, ...unfinished.map((each) => each.template_id), template_id]);
  if (all.size > most) {
    throw new ServiceError("quota_exceeded", {
      detail: `The organization has ${all.size - 1} templates, and may have ${most}.`,
      details: { limit: "templates", used: all.size - 1, cap: most },
      hint: "Remove one of them first.",
    });
  }
}

async function rootRules(
  { registries, templates, aside }: BuildsDeps,
  { from = {}, build_args }: Partial<Input>,
  orgId: OrgId,
): Promise<RuleBreak[]> {
  const given = ROOTS.filter((root) => from[root] !== undefined);
  if (given.length !== 1) {
    return [
      {
        ...{ field: "from", code: given.length === 0 ? "required" : "conflicting_fields" },
        message: "from needs one of image, recipe and dockerfile.",
      },
    ];
  }
  const [root = "image"] = given;
  const broken: RuleBreak[] = [];
  if (from.context !== undefined) {
    if (root !== "dockerfile")
      broken.push({ field: "from.context", code: "not_allowed", message: "from.context requires from.dockerfile." });
    else if (!(await inPieces(isBase64(from.context), new Pieces(loopTime, ownerOf(orgId), "template.context"))))
      broken.push({ field: "from.context", code: "invalid_base64", message: "from.context is not base64." });
  }
  if (build_args !== undefined && root !== "dockerfile")
    broken.push({ field: "build_args", code: "not_allowed", message: "build_args require from.dockerfile." });
  const field = root === "recipe" ? "from.recipe.from" : `from.${root}`;
  let reference = from.image ?? from.recipe?.from;
  if (from.dockerfile !== undefined) {
    try {
      const params = { dockerfile: from.dockerfile, args: build_args ?? {} };
      const image = await aside.run(readImage, params, { owner: ownerOf(orgId) });
      // A template made of packages: no image is fetched for it.
      const base = image.name === null ? null : templates.get(image.name, null);
      if (base !== null && base.record.source === undefined) return broken;
      reference = image.from;
    } catch (error) {
      if (!(error instanceof ServiceError && error.code === "validation_failed")) throw error;
      return [...broken, { field, code: "not_understood", message: error.message }];
    }
  }
  const registry = reference === undefined ? null : registryOf(reference);
  if (registry === null)
    broken.push({
      field,
      code: "no_registry",
      message: `${field} names neither a registry, by a host name at its start, nor a template of packages of this host.`,
    });
  else if (!registries.includes("*") && !registries.includes(registry.toLowerCase())) {
    broken.push({
      ...{ field, code: "image_unauthorized" },
      message: `Images of ${registry} are not fetched for organizations on this host: its operator allows registries in template.registries.`,
    });
  }
  return broken;
}

function useRules({ from = {}, start, ready, egress_allowlist, default_memory_mib, min_memory_mib }: Partial<Input>) {
  const broken: RuleBreak[] = [];
  if (ready !== undefined && start === undefined)
    broken.push({ field: "ready", code: "not_allowed", message: "ready requires start." });
  if (egress_allowlist !== undefined && from.image !== undefined) {
    const message = "egress_allowlist applies to steps, and an image alone has none.";
    broken.push({ field: "egress_allowlist", code: "not_allowed", message });
  }
  if (default_memory_mib !== undefined && default_memory_mib < (min_memory_mib ?? MIN_MIB)) {
    const message = `default_memory_mib must be at least min_memory_mib, ${min_memory_mib ?? MIN_MIB}.`;
    broken.push({ field: "default_memory_mib", code: "out_of_range", message });
  }
  return broken;
}

function orderOf(input: Input, org_id: OrgId): OrgOrder {
  const { template_id, from, start, ready, min_memory_mib = MIN_MIB } = input;
  const { image, recipe, dockerfile } = from;
  const root = image === undefined ? recipe : { from: image };
  return {
    ...{ org_id, template_id, dockerfile: dockerfile ?? null, args: input.build_args ?? {} },
    context: from.context ?? null,
    registry_auth: input.registry_auth ?? null,
    anew: input.no_cache ?? false,
    secrets: Object.fromEntries(
      Object.entries(input.secrets ?? {}).map(([name, text]) => [name, Buffer.from(text).toString("base64")]),
    ),
    recipe: {
      ...{ template_id, ...root, tools: [] },
      description: input.description ?? (image ?? recipe?.from ?? "a Dockerfile").slice(0, 256),
      ...{ min_memory_mib, disk_mib: input.disk_mib ?? DISK_MIB },
      default_memory_mib: input.default_memory_mib ?? Math.max(DEFAULT_MIB, min_memory_mib),
      ...(start !== undefined && { start: start === "image" ? OF_IMAGE : start }),
      ...(ready !== undefined && { ready }),
      ...(input.egress_allowlist !== undefined && { egress_allowlist: input.egress_allowlist }),
    },
  };
}
