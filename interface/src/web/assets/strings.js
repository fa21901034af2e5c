// Every text of the page in every language it speaks.

import { en } from './strings_en.js';
import { zh } from './strings_zh.js';

export const STRINGS = { en, zh };
