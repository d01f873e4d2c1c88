/** Owns the calls that list templates and show one. */
import { templateGet, templateList } from "../../../shared/api/templates.ts";
import { type Bound, bind } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Templates } from "./registry.ts";

export function makeTemplateList(templates: Templates): Bound[] {
  return [
    bind(templateList, {
      run: () => ({ outcome: "ok", body: { items: templates.list().map(({ record }) => record), next_cursor: null } }),
    }),
    bind(templateGet, {
      find: (_call, params) => {
        const templateId = String(params.template_id);
        const template = templates.get(templateId);
        if (!template) {
          throw new ServiceError("template_not_found", { inPath: true, detail: `There is no template ${templateId}.` });
        }
        return template;
      },
      run: (_call, _input, template) => ({ outcome: "ok", body: template.record }),
    }),
  ];
}
