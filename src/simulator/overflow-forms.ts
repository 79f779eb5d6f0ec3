import { GATEWAY_OVERFLOWS } from './overflow-of-gateways.js';
import { SERVER_OVERFLOWS } from './overflow-of-servers.js';
import { VENDOR_OVERFLOWS } from './overflow-of-vendors.js';
import type { OverflowForm } from './reply-plan.js';
import { SILENT_OVERFLOWS } from './silent-overflows.js';

/** Every way in which a provider is known to answer a prompt that does not fit. */
export const OVERFLOW_FORMS: Readonly<Record<string, OverflowForm>> = {
  ...VENDOR_OVERFLOWS,
  ...SERVER_OVERFLOWS,
  ...GATEWAY_OVERFLOWS,
  ...SILENT_OVERFLOWS,
};
